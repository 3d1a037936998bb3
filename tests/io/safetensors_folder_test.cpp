// Checkpoint folders: one file or shards, in and out, and every way an index and its shards can disagree.
#include "io/safetensors_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "io/files.h"
#include "io/safetensors_bytes.h"
#include "support/pass.h"

namespace qkv {
namespace safetensors_folder_test {

namespace fs = std::filesystem;
using test::contents;
using test::file_of;
using test::header_of;
using test::outgoing_text;
using test::text_of;

constexpr const char* kIndex = "model.safetensors.index.json";

std::vector<OutgoingTensor> five_tensors() {
  return {outgoing_text("e", "U8", {6}, "eeeeee"), outgoing_text("d", "U8", {4}, "dddd"),
          outgoing_text("c", "U8", {11}, "ccccccccccc"), outgoing_text("b", "U8", {5}, "bbbbb"),
          outgoing_text("a", "U8", {5}, "aaaaa")};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& file : fs::directory_iterator(folder)) out.push_back(file.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(SafetensorsFolder, WritesOneFileWhereItFits) {
  const TempFolder folder;
  write_safetensors_folder(folder.path(), five_tensors(), {{"format", "pt"}});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"model.safetensors"});
  const auto in = SafetensorsFolder::open(folder.path());
  EXPECT_EQ(in.entries().size(), 5u);
  EXPECT_EQ(text_of(in.at("c").bytes), "ccccccccccc");
}

TEST(SafetensorsFolder, WritesShardsAsTransformersDoes) {
  const TempFolder folder;
  write_safetensors_folder(folder.path(), five_tensors(), {{"format", "pt"}}, {.largest_shard = 10});
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                      "model-00003-of-00003.safetensors", kIndex}));
  EXPECT_EQ(contents(folder.path() / kIndex), R"({
  "metadata": {
    "total_size": 31
  },
  "weight_map": {
    "a": "model-00003-of-00003.safetensors",
    "b": "model-00003-of-00003.safetensors",
    "c": "model-00002-of-00003.safetensors",
    "d": "model-00001-of-00003.safetensors",
    "e": "model-00001-of-00003.safetensors"
  }
}
)");
  const auto in = SafetensorsFolder::open(folder.path());
  ASSERT_EQ(in.files().size(), 3u);
  ASSERT_EQ(in.entries().size(), 5u);
  for (const OutgoingTensor& want : five_tensors()) {
    const StoredTensor& got = in.at(want.name);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(text_of(got.bytes), std::string(got.bytes.size(), want.name[0]));
    in.release(got);
    EXPECT_EQ(text_of(got.bytes), std::string(got.bytes.size(), want.name[0]));
  }
  EXPECT_EQ(in.find("f"), nullptr);
  expect_error([&] { (void)in.at("f"); }, {folder.path().string(), "has no tensor 'f' among its 5"});
  EXPECT_EQ(in.files()[1].metadata().at("format"), "pt");
}

TEST(SafetensorsFolder, CutsShardsAtTheLimitAndNotBefore) {
  for (const uint64_t limit : {0u, 9u, 10u, 11u, 30u}) {
    const TempFolder folder;
    write_safetensors_folder(folder.path(), five_tensors(), {}, {.largest_shard = limit});
    const auto in = SafetensorsFolder::open(folder.path());
    EXPECT_EQ(in.entries().size(), 5u);
    for (const Safetensors& shard : in.files()) {
      const Safetensors file = Safetensors::open(shard.name());
      uint64_t bytes = 0;
      for (const StoredTensor& entry : file.entries()) bytes += entry.bytes.size();
      EXPECT_TRUE(bytes <= limit || file.entries().size() == 1) << limit;
    }
  }
}

TEST(SafetensorsFolder, RoundTripsAGolden) {
  const Safetensors right = Safetensors::open(test::golden("llama/model.safetensors"));
  const TempFolder folder;
  write_safetensors_folder(folder.path(), test::all_of(right), right.metadata(), {.largest_shard = 20'000});
  const auto in = SafetensorsFolder::open(folder.path());
  EXPECT_GT(in.files().size(), 2u);
  ASSERT_EQ(in.entries().size(), right.entries().size());
  for (size_t i = 0; i < right.entries().size(); ++i) {
    EXPECT_EQ(in.entries()[i].name, right.entries()[i].name);
    EXPECT_EQ(in.entries()[i].dtype, right.entries()[i].dtype);
    EXPECT_EQ(in.entries()[i].shape, right.entries()[i].shape);
    EXPECT_TRUE(std::ranges::equal(in.entries()[i].bytes, right.entries()[i].bytes));
  }
}

TEST(SafetensorsFolder, OpensAFileOfAnyName) {
  const auto in = SafetensorsFolder::open(test::golden("llama/io.safetensors"));
  EXPECT_EQ(in.files().size(), 1u);
  EXPECT_NE(in.find("input_ids"), nullptr);
}

TEST(SafetensorsFolder, WritesBesideNoOtherModel) {
  for (const char* name : {"model.safetensors", kIndex}) {
    const TempFolder folder;
    folder.write(name, "old");
    expect_error([&] { write_safetensors_folder(folder.path(), five_tensors(), {}); }, {"already holds", name});
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{name});
  }
}

TEST(SafetensorsFolder, WritesNothingItWouldNotRead) {
  const TempFolder folder;
  auto tensors = five_tensors();
  tensors.push_back(outgoing_text("e", "U8", {1}, "e"));
  expect_error([&] { write_safetensors_folder(folder.path(), tensors, {}, {.largest_shard = 10}); },
               {"'e' is to be written twice"});
  tensors.back() = outgoing_text("x", "Q8_0", {32}, std::string(34, 'q'));
  expect_error([&] { write_safetensors_folder(folder.path(), tensors, {}, {.largest_shard = 10}); }, {"'Q8_0'"});
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(SafetensorsFolder, WithoutItsIndexThereIsNoModel) {
  const TempFolder folder;
  auto tensors = five_tensors();
  tensors.back().give = [](ByteSink) { QKV_FAIL("the source is gone", Hint("none")); };
  expect_error([&] { write_safetensors_folder(folder.path(), tensors, {}, {.largest_shard = 10}); },
               {"the source is gone"});
  expect_error([&] { (void)SafetensorsFolder::open(folder.path()); }, {"holds neither model.safetensors nor"});
}

// Two shards: x in s1, y in s2. Each case breaks something.
struct Folder {
  std::string index = R"({"weight_map":{"x":"s1.safetensors","y":"s2.safetensors"}})";
  std::string s1 = file_of(header_of({{"x", "U8", {1}, 0, 1}}), "x");
  std::string s2 = file_of(header_of({{"y", "U8", {1}, 0, 1}}), "y");
};

struct Broken {
  const char* defect;
  Folder folder;
  const char* says;
};

void PrintTo(const Broken& b, std::ostream* out) {  // NOLINT: gtest's name
  *out << b.defect;
}

std::string map_of(const std::string& entries) {
  return "{\"weight_map\":{" + entries + "}}";
}

std::string with_path(const std::string& path) {
  return map_of(R"("x":"s1.safetensors","y":)" + path);
}

std::vector<Broken> broken_folders() {
  const std::string two = file_of(header_of({{"x", "U8", {1}, 0, 1}, {"y", "U8", {1}, 1, 2}}), "xy");
  const std::string none = file_of("{}", "");
  return {
      {"index_empty", {.index = ""}, "(byte 0): unexpected end of input, expected '{'"},
      {"index_no_json", {.index = "weights"}, "not valid JSON"},
      {"index_cut", {.index = R"({"weight_map":{"x":"s1.safe)"}, "not valid JSON"},
      {"index_array", {.index = "[]"}, "expected '{' but found '['"},
      {"index_null", {.index = "null"}, "expected '{' but found 'n'"},
      {"index_too_deep",
       {.index = "{\"a\":" + std::string(99, '[') + std::string(99, ']') + "}"},
       "nested more than 64"},
      {"index_broken_utf8", {.index = "{\"\xFF\":1}"}, "UTF-8"},
      {"no_weight_map", {.index = R"({"metadata":{"total_size":2}})"}, "has no weight_map"},
      {"weight_map_text",
       {.index = R"({"weight_map":"s1"})"},
       "weight_map: not valid JSON, line 1, column 15 (byte 14): expected '{' but found '\"'"},
      {"weight_map_array",
       {.index = R"({"weight_map":[]})"},
       "weight_map: not valid JSON, line 1, column 15 (byte 14): expected '{' but found '['"},
      {"weight_map_empty", {.index = map_of("")}, "weight_map is empty"},
      {"weight_map_twice", {.index = R"({"weight_map":{},"weight_map":{}})"}, "'weight_map' appears twice"},
      {"tensor_twice_in_index", {.index = map_of(R"("x":"s1.safetensors","x":"s2.safetensors")")}, "'x' appears twice"},
      {"file_number", {.index = with_path("1")}, "no text but of type number"},
      {"file_null", {.index = with_path("null")}, "no text but of type null"},
      {"file_object", {.index = with_path("{}")}, "no text but of type object"},
      {"file_empty", {.index = with_path("\"\"")}, "in '', which is not the plain name"},
      {"path_up", {.index = with_path(R"("../s2.safetensors")")}, "'../s2.safetensors', which is not the plain name"},
      {"path_up_inside", {.index = with_path(R"("a/../s2.safetensors")")}, "which is not the plain name"},
      {"path_absolute", {.index = with_path(R"("/etc/s2.safetensors")")}, "which is not the plain name"},
      {"path_folder", {.index = with_path(R"("sub/s2.safetensors")")}, "which is not the plain name"},
      {"path_backslash", {.index = with_path(R"("..\\s2.safetensors")")}, "which is not the plain name"},
      {"path_dots", {.index = with_path(R"("..")")}, "'..', which is not the plain name"},
      {"path_hidden", {.index = with_path(R"("..safetensors")")}, "which is not the plain name"},
      {"path_only_extension", {.index = with_path(R"(".safetensors")")}, "which is not the plain name"},
      {"path_zero_byte", {.index = with_path(R"("s2\u0000.safetensors")")}, "which is not the plain name"},
      {"path_other_format", {.index = with_path(R"("pytorch_model.bin")")}, "'pytorch_model.bin', which is not"},
      {"shard_missing",
       {.index = with_path(R"("s3.safetensors")")},
       "names the shard 's3.safetensors' but the folder does not hold it"},
      {"shard_name_too_long",
       {.index = with_path("\"" + std::string(5000, 's') + ".safetensors\"")},
       "which is not the plain name"},
      {"shard_empty", {.s2 = ""}, "has 0 bytes but a safetensors file starts with 8"},
      {"shard_damaged", {.s2 = file_of("{\"y\":1}", "")}, "must be described by an object"},
      {"shard_without_its_tensor", {.s2 = none}, "puts tensor 'y' in 's2.safetensors', which does not hold it among"},
      {"shard_with_one_more",
       {.s1 = file_of(header_of({{"x", "U8", {1}, 0, 1}, {"z", "U8", {0}, 1, 1}}), "x")},
       "does not name tensor 'z', which the shard 's1.safetensors' holds"},
      {"tensor_in_both_shards", {.s1 = two}, "puts tensor 'y' in 's2.safetensors' but the shard 's1.safetensors'"},
      {"tensors_swapped",
       {.index = map_of(R"("x":"s2.safetensors","y":"s1.safetensors")")},
       "puts tensor 'x' in 's2.safetensors' but the shard 's1.safetensors' holds it"},
  };
}

class BrokenFolder : public testing::TestWithParam<Broken> {};

TEST_P(BrokenFolder, IsRefusedWithItsReason) {
  const TempFolder folder;
  folder.write(kIndex, GetParam().folder.index);
  folder.write("s1.safetensors", GetParam().folder.s1);
  folder.write("s2.safetensors", GetParam().folder.s2);
  const auto error = error_of([&] { (void)SafetensorsFolder::open(folder.path()); });
  ASSERT_TRUE(error) << "the folder was taken, but should say: " << GetParam().says;
  EXPECT_EQ(error->kind(), Error::Kind::input);
  EXPECT_TRUE(error->message().starts_with(folder.path().string())) << error->message();
  EXPECT_NE(error->message().find(GetParam().says), std::string::npos) << error->message();
  EXPECT_FALSE(error->hint().empty());
  EXPECT_LT(error->message().size(), 600u) << error->message();
}

INSTANTIATE_TEST_SUITE_P(Case, BrokenFolder, testing::ValuesIn(broken_folders()),
                         [](const auto& param) { return std::string(param.param.defect); });

TEST(SafetensorsFolder, TakesTheFolderTheBrokenOnesStartFrom) {
  const TempFolder folder;
  folder.write(kIndex, Folder{}.index);
  folder.write("s1.safetensors", Folder{}.s1);
  folder.write("s2.safetensors", Folder{}.s2);
  folder.write("other.safetensors", "not a shard");
  EXPECT_EQ(SafetensorsFolder::open(folder.path()).entries().size(), 2u);
}

TEST(SafetensorsFolder, RefusesFoldersWithoutAModel) {
  const TempFolder folder;
  expect_error([&] { (void)SafetensorsFolder::open(folder.path()); },
               {"holds neither model.safetensors nor model.safetensors.index.json"});
  expect_error([&] { (void)SafetensorsFolder::open(folder.path() / "absent"); }, {"cannot open", "absent"});
}

}  // namespace safetensors_folder_test
}  // namespace qkv
