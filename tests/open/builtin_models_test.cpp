// Models that ship, by name.
#include "open/builtin_models.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/expect_error.h"
#include "base/file_manifest.h"
#include "base/temp_folder.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// A folder of built-in models with one in it, made of the golden llama as of a run.
class Shipped : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(temp_.path() / "run");
    fs::copy(test::golden("llama"), temp_.path() / "run" / "best");
    std::ofstream(temp_.path() / "run" / "recipe.json") << "{}\n";
    fs::create_directory(folder());
    pack_builtin(temp_.path() / "run", folder() / "world", "{}\n");
    ::setenv("QKV_MODELS", folder().c_str(), 1);
    before_ = fs::current_path();
    fs::create_directories(temp_.path() / "here");
    fs::current_path(temp_.path() / "here");
  }
  void TearDown() override {
    fs::current_path(before_);
    ::unsetenv("QKV_MODELS");
  }
  fs::path folder() const { return temp_.path() / "models"; }

  TempFolder temp_;
  fs::path before_;
};

std::string hint_for(const std::string& name) {
  const std::optional<Error> error = error_of([&] { find_model(name); });
  return error ? error->hint() : "no Error";
}

TEST_F(Shipped, AreFoundByName) {
  EXPECT_EQ(find_model("world"), (folder() / "world").string());
  EXPECT_EQ(find_model("builtin:world"), (folder() / "world").string());
  const ModelSpec spec = Checkpoint::open(find_model("world")).spec;
  EXPECT_EQ(spec.dtype, DType::bf16);
  for (const char* file : {"movie.json", "recipe.json", "config.json", "model.safetensors", kManifest}) {
    EXPECT_TRUE(fs::exists(folder() / "world" / file)) << file;
  }
  EXPECT_FALSE(fs::exists(folder() / "world" / "converted"));
}

TEST_F(Shipped, GiveWayToWhatIsThere) {
  fs::create_directory("world");
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_model("world"), "world");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("builtin:world"), std::string::npos);
  EXPECT_EQ(find_model("builtin:world"), (folder() / "world").string());
  fs::create_directory("mine");
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_model("mine"), "mine");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Shipped, UnknownNamesAreRefusedWithTheKnown) {
  expect_error([] { find_model("wrold"); }, {"no built-in model", "wrold"});
  const std::string hint = hint_for("wrold");
  for (const char* part : {"did you mean 'world'", "translator", "experts", "world-2l"}) {
    EXPECT_NE(hint.find(part), std::string::npos) << hint;
  }
  expect_error([] { find_model("builtin:mine"); }, {"no built-in model", "mine"});
  EXPECT_EQ(find_model("some/where"), "some/where");  // a path: who opens it says what is wrong
  EXPECT_EQ(find_model_or_other("bytes"), "bytes");
  EXPECT_EQ(find_model_or_other("world"), (folder() / "world").string());
}

TEST_F(Shipped, MissingOrDamagedOnesSayHowToMakeThem) {
  expect_error([] { find_model("translator"); }, {"translator", "is not in"});
  EXPECT_NE(hint_for("translator").find("qkv train translator"), std::string::npos);
  std::fstream file(folder() / "world" / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x55');
  file.close();
  expect_error([] { find_model("world"); }, {"model.safetensors", "was written as"});
  EXPECT_NE(hint_for("world").find("qkv train world"), std::string::npos);
}

// Those of the repository are whole, small enough, and made by recipes that ship.
TEST(Repository, ItsModelsAreWhole) {
  const fs::path root = test::golden("").parent_path().parent_path().parent_path(), models = root / "models";
  ::setenv("QKV_MODELS", models.c_str(), 1);
  uint64_t all = 0;
  for (const BuiltinModel& model : builtin_models()) {
    if (!fs::exists(models / model.name)) continue;
    check_builtin(model);
    EXPECT_TRUE(fs::exists(root / "recipes" / (std::string(model.name) + ".json"))) << model.name;
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(models / model.name)) bytes += entry.file_size();
    EXPECT_LE(bytes, uint64_t{16} << 20) << model.name;
    all += bytes;
  }
  EXPECT_LE(all, uint64_t{24'000'000});
  for (const auto& entry : fs::directory_iterator(models)) {
    const auto named = [&](const BuiltinModel& model) { return model.name == entry.path().filename().string(); };
    EXPECT_TRUE(!entry.is_directory() || std::any_of(builtin_models().begin(), builtin_models().end(), named))
        << entry.path() << " has no name in src/open/builtin_models.cpp";
  }
  ::unsetenv("QKV_MODELS");
}

}  // namespace
}  // namespace qkv
