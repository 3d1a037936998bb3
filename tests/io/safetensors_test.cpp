// Valid files: entries, spans, metadata, and the error for a missing name.
#include "io/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"
#include "io/safetensors_bytes.h"

namespace qkv {
namespace safetensors_test {

using test::bytes_of;
using test::described;
using test::file_of;
using test::header_of;

// Two tensors and one empty one, not in the order of their offsets, with metadata and padding.
std::string small_file() {
  const std::string header = fmt::format(
      R"({{{},"__metadata__":{{"format":"pt","note":"größe"}},{},{}}}   )", described({"b.bias", "I16", {3}, 16, 22}),
      described({"a.weight", "F32", {2, 2}, 0, 16}), described({"empty", "F32", {0, 7}, 16, 16}));
  return file_of(header, "0123456789abcdefBIASES");
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What `code` throws, or an Error that says it did not.
template <class Code>
Error error_of(Code&& code) {
  try {
    code();
  } catch (const Error& error) {
    return error;
  }
  return {Error::Kind::internal, "nothing was thrown", "", QKV_HERE};
}

TEST(Safetensors, GivesEntriesSortedByName) {
  const std::string file = small_file();
  const Safetensors st = Safetensors::parse(bytes_of(file), "m.safetensors");
  ASSERT_EQ(st.entries().size(), 3u);
  EXPECT_EQ(st.name(), "m.safetensors");

  EXPECT_EQ(st.entries()[0].name, "a.weight");
  EXPECT_EQ(st.entries()[0].dtype, "F32");
  EXPECT_EQ(st.entries()[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(text_of(st.entries()[0].bytes), "0123456789abcdef");

  EXPECT_EQ(st.entries()[1].name, "b.bias");
  EXPECT_EQ(st.entries()[1].dtype, "I16");
  EXPECT_EQ(text_of(st.entries()[1].bytes), "BIASES");

  EXPECT_EQ(st.entries()[2].name, "empty");
  EXPECT_EQ(st.entries()[2].shape, (std::vector<int64_t>{0, 7}));
  EXPECT_TRUE(st.entries()[2].bytes.empty());
}

TEST(Safetensors, PointsIntoTheFileInsteadOfCopying) {
  const std::string file = small_file();
  const Safetensors st = Safetensors::parse(bytes_of(file), "m");
  EXPECT_EQ(static_cast<const void*>(st.at("b.bias").bytes.data()), file.data() + file.size() - 6);
}

TEST(Safetensors, GivesMetadata) {
  const std::string file = small_file();
  const Safetensors st = Safetensors::parse(bytes_of(file), "m");
  EXPECT_EQ(st.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"note", "größe"}}));
}

TEST(Safetensors, TakesAFileWithoutTensors) {
  const std::string file = file_of("{}", "");
  const Safetensors st = Safetensors::parse(bytes_of(file), "m");
  EXPECT_TRUE(st.entries().empty());
  EXPECT_TRUE(st.metadata().empty());
  EXPECT_EQ(error_of([&] { (void)st.at("x"); }).hint(), "the file holds no tensors at all");
}

TEST(Safetensors, TakesAScalarAndWhitespaceInsideTheHeader) {
  const std::string file =
      file_of("{\n\t\"s\" : {\"shape\":[ ],\"data_offsets\":[0, 8],\"dtype\":\"F64\"}\r\n}", "8 bytes.");
  const Safetensors st = Safetensors::parse(bytes_of(file), "m");
  EXPECT_TRUE(st.at("s").shape.empty());
  EXPECT_EQ(st.at("s").bytes.size(), 8u);
}

TEST(Safetensors, KnowsTheSizeOfEveryDtype) {
  const std::pair<const char*, uint64_t> bits[] = {
      {"F64", 64},    {"F32", 32},    {"F16", 16}, {"BF16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},   {"I64", 64},  {"I32", 32},    {"I16", 16},    {"I8", 8},
      {"U64", 64},    {"U32", 32},    {"U16", 16}, {"U8", 8},    {"BOOL", 8},    {"C64", 64},
  };
  for (const auto& [dtype, size] : bits) {
    const uint64_t bytes = 4 * size / 8;  // four elements are whole bytes for every dtype
    const std::string file = file_of(header_of({{"x", dtype, {4}, 0, bytes}}), std::string(bytes, '.'));
    EXPECT_EQ(Safetensors::parse(bytes_of(file), "m").at("x").bytes.size(), bytes) << dtype;
  }
}

TEST(Safetensors, LetsEmptyTensorsShareAnOffset) {
  const std::string file = file_of(
      header_of({{"e1", "F32", {0}, 0, 0}, {"x", "U8", {2}, 0, 2}, {"e2", "F32", {0}, 2, 2}, {"e0", "F32", {0}, 0, 0}}),
      "xy");
  EXPECT_EQ(Safetensors::parse(bytes_of(file), "m").entries().size(), 4u);
}

TEST(Safetensors, FindsByExactNameOnly) {
  const std::string file = small_file();
  const Safetensors st = Safetensors::parse(bytes_of(file), "m");
  EXPECT_EQ(st.find("b.bias"), &st.at("b.bias"));
  EXPECT_EQ(st.find("b.bia"), nullptr);
  EXPECT_EQ(st.find("b.biass"), nullptr);
  EXPECT_EQ(st.find(""), nullptr);
  EXPECT_EQ(st.find("zzz"), nullptr);
  EXPECT_EQ(st.find("__metadata__"), nullptr);
}

TEST(Safetensors, NamesTheNearestTensorsForAWrongOne) {
  const std::string file = file_of(
      header_of({{"layers.0.q", "U8", {1}, 0, 1}, {"layers.1.q", "U8", {1}, 1, 2}, {"norm", "U8", {1}, 2, 3}}), "abc");
  const Safetensors st = Safetensors::parse(bytes_of(file), "m.safetensors");
  const Error near = error_of([&] { (void)st.at("layer.1.q"); });
  EXPECT_EQ(near.kind(), Error::Kind::input);
  EXPECT_EQ(near.message(), "m.safetensors: has no tensor 'layer.1.q' among its 3");
  EXPECT_EQ(near.hint(), "did you mean 'layers.1.q' or 'layers.0.q'");
  EXPECT_EQ(error_of([&] { (void)st.at("something.else"); }).hint(), "its first tensor is 'layers.0.q'");
}

class OnDisk : public testing::Test {
 protected:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("qkv io test " + std::to_string(getpid()) + ".safetensors");

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(OnDisk, OpensAndOutlivesCopiesAndMoves) {
  write(small_file());
  Safetensors copy = [&] {
    Safetensors st = Safetensors::open(path_);
    return Safetensors(st);
  }();
  const Safetensors moved = std::move(copy);
  EXPECT_EQ(text_of(moved.at("b.bias").bytes), "BIASES");
}

TEST_F(OnDisk, NamesTheFileInErrors) {
  write("short");
  const Error error = error_of([&] { (void)Safetensors::open(path_); });
  EXPECT_EQ(error.kind(), Error::Kind::input);
  EXPECT_NE(error.message().find(path_.filename().string()), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("has 5 bytes"), std::string::npos) << error.message();
}

TEST_F(OnDisk, RefusesAnEmptyFile) {
  write("");
  const Error error = error_of([&] { (void)Safetensors::open(path_); });
  EXPECT_EQ(error.kind(), Error::Kind::input) << error.message();
}

TEST_F(OnDisk, RefusesAMissingFileAndAFolder) {
  EXPECT_EQ(error_of([&] { (void)Safetensors::open(path_); }).kind(), Error::Kind::input);
  EXPECT_EQ(error_of([&] { (void)Safetensors::open(path_.parent_path()); }).kind(), Error::Kind::input);
}

}  // namespace safetensors_test
}  // namespace qkv
