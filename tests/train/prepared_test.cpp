// A prepared folder that changed under its run is noticed.
#include "train/prepared.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "train/prepare.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

class PreparedFolder : public testing::Test {
 protected:
  PreparedFolder() {
    recipe_ = read_recipe(parse_json(R"({"model": {"model_type": "llama", "hidden_size": 16, "intermediate_size": 32,
                                           "num_hidden_layers": 1, "num_attention_heads": 2},
                                         "tokenizer": {"train": "char"}, "data": {"world": "en", "stories": 40},
                                         "sequence": 32, "batch_tokens": 64, "steps": 20})",
                                     "test"),
                          "test");
  }
  void prepare() { prepare_run(recipe_, folder_, pool_); }
  void flip(const fs::path& file) const {
    std::string bytes = read_file(folder_ / file, 1 << 24);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(folder_ / file, std::ios::binary) << bytes;
  }

  TempFolder temp_;
  fs::path folder_ = temp_.path() / "prepared";
  ThreadPool pool_{1};
  Recipe recipe_;
};

TEST_F(PreparedFolder, StoriesDoNotDependOnTheThreadsThatTellThem) {
  recipe_.data.stories = 2500;  // more than one thread tells at a time
  recipe_.data.kinds = {"echo", "sums"};
  prepare();
  ThreadPool three(3);
  const fs::path other = temp_.path() / "other";
  prepare_run(recipe_, other, three);
  for (const char* file : {"data/train/train-00000.tokens", "data/train/train-00000.index"}) {
    EXPECT_EQ(read_file(folder_ / file, 1 << 26), read_file(other / file, 1 << 26)) << file;
  }
  recipe_.data.kinds = {"ecko"};
  expect_error([&] { prepare_run(recipe_, temp_.path() / "none", three); }, {"'ecko'"});
}

TEST_F(PreparedFolder, IsCheckedFileByFile) {
  EXPECT_EQ(missing_of_prepared(folder_), folder_);
  prepare();
  EXPECT_TRUE(missing_of_prepared(folder_).empty());
  EXPECT_TRUE(check_prepared(folder_, recipe_).empty());
  for (const char* file : {"data/train/train-00000.tokens", "data/train/manifest.json", "tokenizer/tokenizer.json",
                           "start/config.json", "start/model.safetensors", "recipe.json", "manifest.json"}) {
    flip(file);
    const auto error = error_of([&] { check_prepared(folder_, recipe_); });
    ASSERT_TRUE(error) << file;
    const bool named = error->message().find((folder_ / file).string()) != std::string::npos;
    EXPECT_TRUE(named || file == std::string_view("manifest.json"))
        << error->message();  // a wrong sum is of another file
    EXPECT_NE(error->hint().find("--from-scratch"), std::string::npos);
    flip(file);
  }
  expect_error(
      [&] {
        flip("data/train/train-00000.index");
        check_prepared(folder_, recipe_);
      },
      {"train-00000.index", "\"sha256\"", "but was written as", "\"sha256\""});
  flip("data/train/train-00000.index");
  std::ofstream(folder_ / "tokenizer/special_tokens_map.json") << "{}";
  expect_error([&] { check_prepared(folder_, recipe_); }, {"special_tokens_map.json was added"});
  fs::remove(folder_ / "tokenizer/special_tokens_map.json");
  EXPECT_TRUE(check_prepared(folder_, recipe_).empty());
  fs::remove_all(folder_ / "start");
  EXPECT_EQ(missing_of_prepared(folder_).parent_path(), folder_ / "start");
  fs::remove(folder_ / "manifest.json");
  EXPECT_EQ(missing_of_prepared(folder_), folder_ / "manifest.json");
}

TEST_F(PreparedFolder, BelongsToItsRecipe) {
  prepare();
  Recipe changed = recipe_;
  changed.steps = 30;
  changed.schedule.peak = 0.5;
  changed.watch = true;
  EXPECT_EQ(check_prepared(folder_, changed),
            (std::vector<std::string>{"schedule.peak: 0.5, was 0.001", "steps: 30, was 20"}));
  changed = recipe_;
  changed.data.stories = 41;
  expect_error([&] { check_prepared(folder_, changed); }, {"data.stories: 41, was 40"});
  changed = recipe_;
  changed.model["hidden_size"] = 8;
  expect_error([&] { check_prepared(folder_, changed); }, {"model.hidden_size: 8, was 16"});
  changed = recipe_;
  changed.seed = 2;
  expect_error([&] { check_prepared(folder_, changed); }, {"seed: 2, was 1"});
}

TEST_F(PreparedFolder, WhatCannotFitIsRefusedBeforeItIsMade) {
  recipe_.data.stories = int64_t{1} << 50;
  expect_error([&] { prepare(); }, {"1125899906842624 stories", "GB but the disk", "free"});
  recipe_.data.stories = 40;
  recipe_.model["hidden_size"] = 1 << 20;
  expect_error([&] { prepare(); }, {"weights", "GB but", "memory"});
  EXPECT_TRUE(fs::is_empty(temp_.path()));
}

}  // namespace
}  // namespace qkv
