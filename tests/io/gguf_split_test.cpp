// Models in several files, and types of blocks that are decoded by their formula.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/expect_error.h"
#include "base/half.h"
#include "base/temp_folder.h"
#include "io/files.h"
#include "io/floats.h"
#include "io/gguf.h"
#include "io/gguf_write.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

OutgoingTensor some_floats(const std::string& name, float value) {
  return {name, "F32", {2}, [value](ByteSink sink) {
            const float both[2] = {value, value + 1};
            sink(std::as_bytes(std::span(both)));
          }};
}

// As llama-gguf-split writes them: the model's keys in the first part only.
std::filesystem::path write_part(const TempFolder& folder, uint32_t number, uint32_t count, uint32_t tensors = 3) {
  GgufMetadata metadata;
  if (number == 0) metadata.add_text("general.architecture", "llama");
  metadata.add_u32("split.no", number);
  metadata.add_u32("split.count", count);
  metadata.add_i32("split.tensors.count", static_cast<int32_t>(tensors));
  const auto path = folder.path() / fmt::format("m-{:05}-of-{:05}.gguf", number + 1, count);
  write_gguf(path, metadata, std::vector{some_floats("t" + std::to_string(number), static_cast<float>(10 * number))});
  return path;
}

TEST(GgufSplit, TheFirstFileOpensAll) {
  const TempFolder folder;
  const auto first = write_part(folder, 0, 3);
  write_part(folder, 1, 3);
  write_part(folder, 2, 3);
  const Gguf in = Gguf::open(first);
  ASSERT_EQ(in.entries().size(), 3U);
  EXPECT_EQ(in.text("general.architecture"), "llama");
  for (const int i : {0, 1, 2}) {
    float values[2] = {};
    decode_floats("F32", in.at("t" + std::to_string(i)).bytes, values);
    EXPECT_EQ(values[1], static_cast<float>(10 * i + 1));
    in.release(in.at("t" + std::to_string(i)));
  }
}

TEST(GgufSplit, SaysWhatIsMissingOrWrong) {
  const TempFolder folder;
  const auto first = write_part(folder, 0, 3);
  const auto second = write_part(folder, 1, 3);
  expect_error([&] { Gguf::open(first); }, {"the first of 3 files", "missing: m-00003-of-00003.gguf"});
  const auto error = error_of([&] { Gguf::open(second); });
  ASSERT_TRUE(error);
  EXPECT_NE(error->message().find("is part 2 of a model in 3 files"), std::string::npos) << error->message();
  EXPECT_NE(error->hint().find("m-00001-of-00003.gguf"), std::string::npos) << error->hint();
  const auto third = write_part(folder, 2, 3);
  std::filesystem::copy_file(second, third, std::filesystem::copy_options::overwrite_existing);
  expect_error([&] { Gguf::open(first); }, {"m-00003-of-00003.gguf: is not part 3 of the 3"});
  write_part(folder, 2, 3);
  std::filesystem::rename(first, folder.path() / "other.gguf");
  expect_error([&] { Gguf::open(folder.path() / "other.gguf"); }, {"must end in -00001-of-00003.gguf"});
  const TempFolder counted;
  write_part(counted, 1, 2, 5);
  expect_error([&] { Gguf::open(write_part(counted, 0, 2, 5)); }, {"parts hold 5 tensors but they hold 2"});
}

// The published values, closer around zero than an even grid.
constexpr int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof(T));
}

TEST(Iq4, NlIsScaleTimesTable) {
  std::vector<std::byte> bytes;
  for (const float d : {0.5F, -0.25F}) {
    put(bytes, to_f16(d));
    for (int i = 0; i < 16; ++i) put(bytes, static_cast<uint8_t>((15 - i) << 4 | i));
  }
  std::vector<float> values(64);
  decode_floats("IQ4_NL", bytes, values);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 0.5F * static_cast<float>(kTable[i]));
    EXPECT_EQ(values[16 + i], 0.5F * static_cast<float>(kTable[15 - i]));
    EXPECT_EQ(values[32 + i], -0.25F * static_cast<float>(kTable[i]));
  }
  expect_error([&] { decode_floats("IQ4_NL", std::span(bytes).first(35), values); }, {"IQ4_NL", "35 bytes"});
}

TEST(Iq4, XsHasAScaleOfSixBitsPer32) {
  const int scales[8] = {0, 1, 17, 31, 32, 33, 47, 63};
  std::vector<std::byte> bytes;
  put(bytes, to_f16(2));
  uint16_t high = 0;
  uint8_t low[4] = {};
  for (size_t i = 0; i < 8; ++i) {
    high = static_cast<uint16_t>(high | (scales[i] >> 4) << (2 * i));
    low[i / 2] = static_cast<uint8_t>(low[i / 2] | (scales[i] & 15) << (4 * (i % 2)));
  }
  put(bytes, high);
  for (const uint8_t byte : low) put(bytes, byte);
  for (int i = 0; i < 128; ++i) put(bytes, static_cast<uint8_t>((i * 7 % 16) << 4 | (i * 3 % 16)));
  ASSERT_EQ(bytes.size(), 136U);
  std::vector<float> values(256);
  decode_floats("IQ4_XS", bytes, values);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 32, at = part * 16 + i % 16, index = i % 32 < 16 ? at * 3 % 16 : at * 7 % 16;
    EXPECT_EQ(values[static_cast<size_t>(i)], static_cast<float>(2 * (scales[part] - 32) * kTable[index])) << i;
  }
  EXPECT_EQ(find_gguf_type(23)->name, "IQ4_XS");
  EXPECT_EQ(gguf_type_name(16), "IQ2_XXS");
  EXPECT_EQ(gguf_type_name(99), "number 99");
}

}  // namespace
}  // namespace qkv
