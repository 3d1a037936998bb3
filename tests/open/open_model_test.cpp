// A model opened from disk is whole; parts that cannot be read say why when they are asked for.
#include "open/open_model.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "infer/likelihood.h"
#include "support/pass.h"
#include "text/tokenizer/sentencepiece_bytes.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

void write_text(const fs::path& file, std::string_view text) {
  write_file_atomic(file, std::as_bytes(std::span(text)));
}

void copy_model(const char* name, const fs::path& folder) {
  for (const char* file : {"config.json", "generation_config.json", "model.safetensors"}) {
    fs::copy_file(test::golden(name) / file, folder / file);
  }
}

TEST(OpenModel, HasEverythingButWhatIsNotThere) {
  const OpenModel model(test::golden("marian").string(), {.threads = 1});
  EXPECT_EQ(model.spec().family, "marian");
  EXPECT_EQ(model.precision().compute, DType::f32) << "all weights are f32";
  EXPECT_EQ(model.target_start(), Ids{0});
  EXPECT_EQ(model.defaults().tokens.eos, Ids{2});
  EXPECT_FALSE(model.has_tokenizer());
  expect_error([&] { model.tokenizer(); }, {"has no tokenizer"});
  EXPECT_NE(error_of([&] { model.tokenizer(); })->hint().find("--ids"), std::string::npos);
  expect_error([&] { model.encode("text"); }, {"has no tokenizer"});
  for (const auto& [name, weight] : model.model().weights()) EXPECT_FALSE(weight.trainable) << name;
}

TEST(OpenModel, ComputesInThePrecisionAskedFor) {
  const OpenModel model(test::golden("llama").string(), {.precision = Precision::bf16(), .threads = 1});
  EXPECT_EQ(model.precision().compute, DType::bf16);
  Runner runner = model.runner({.positions = 32});
  EXPECT_EQ(runner.options().precision.compute, DType::bf16);
  const TokenText text{.ids = {1, 5, 7}};
  EXPECT_EQ(log_probabilities(runner, {&text, 1}).front().size(), 2U);
}

TEST(OpenModel, EncodesPairsFromTheStartOfTheTarget) {
  const TempFolder folder;
  copy_model("t5", folder.path());
  fs::copy_file(test::golden("tokenizers") / "unigram" / "tokenizer.json", folder.path() / "tokenizer.json");
  const OpenModel model(folder.path().string(), {.threads = 1});
  ASSERT_TRUE(model.has_tokenizer());
  const TokenText pair = model.encode("the cat", "die Katze");
  EXPECT_EQ(pair.source, model.tokenizer().encode("the cat"));
  Ids target = model.tokenizer().encode("die Katze");
  target.insert(target.begin(), 0);
  EXPECT_EQ(pair.ids, target);
  EXPECT_EQ(pair.text, "the cat");
  EXPECT_EQ(pair.target_text, "die Katze");
  EXPECT_EQ(model.encode("the cat").ids, Ids{0});
}

// Looking inside needs no generation_config.json.
TEST(OpenModel, OpensWithBrokenDefaults) {
  const TempFolder folder;
  copy_model("llama", folder.path());
  write_text(folder.path() / "generation_config.json", R"({"num_beams": 0})");
  const OpenModel model(folder.path().string(), {.threads = 1});
  expect_error([&] { model.defaults(); }, {"num_beams"});
}

// Marian's target has a vocabulary of its own.
TEST(OpenModel, EncodesTheTargetWithItsOwnTokenizer) {
  const TempFolder folder;
  copy_model("t5", folder.path());
  fs::copy_file(test::golden("tokenizers") / "unigram" / "tokenizer.json", folder.path() / "tokenizer.json");
  write_text(folder.path() / "target.spm", test::ModelBytes{}.bytes());
  const OpenModel model(folder.path().string(), {.threads = 1});
  ASSERT_NE(model.tokenizer().encode("ab ab"), model.target_tokenizer().encode("ab ab"));
  Ids target = model.target_tokenizer().encode("ab ab");
  ASSERT_FALSE(target.empty());
  target.insert(target.begin(), 0);
  const TokenText pair = model.encode("ab ab", "ab ab");
  EXPECT_EQ(pair.ids, target);
  EXPECT_EQ(pair.source, model.tokenizer().encode("ab ab"));
}

}  // namespace
}  // namespace qkv
