// For any bytes: an Error of kind input, or a file whose spans are inside it and used once; in little time, and with
// little more memory than the size of the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/allocations.h"
#include "io/gguf.h"
#include "io/gguf_bytes.h"
#include "io/safetensors.h"
#include "io/safetensors_bytes.h"

namespace qkv {
namespace gguf_property_test {

using test::array;
using test::bytes_of;
using test::gguf_head;
using test::gguf_of;
using test::GgufTensor;
using test::key;
using test::padded;
using test::tensor_info;
using test::text;
using test::u32;
using test::u64;

constexpr size_t kLittle = 64 << 10;  // error texts and the like

// Every kind of value, and tensors of several types.
std::string small_file() {
  return gguf_of({key("general.alignment", 4, u32(32)), key("u8", 0, "a"), key("i16", 3, "ab"), key("flag", 7, "\x01"),
                  key("text", 8, text("hello")), key("f64", 12, u64(0)), key("ints", 9, array(5, 2, u64(7))),
                  key("texts", 9, array(8, 2, text("a") + text(""))),
                  key("nested", 9, array(9, 2, array(0, 1, "x") + array(8, 1, text("y"))))},
                 {{.name = "a", .dims = {2, 3}, .type = 0},
                  {.name = "b", .dims = {32, 2}, .type = 8, .offset = 32},
                  {.name = "c", .dims = {3}, .type = 1, .offset = 128}},
                 padded(std::string(24, 'a')) + padded(std::string(68, 'b')) + padded(std::string(6, 'c')));
}

void touch_all_values(const Gguf& in) {
  const auto tried = [](const auto& read) {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::input) << error.message();
    }
  };
  for (const Gguf::Field& field : in.fields()) {
    tried([&] { (void)in.text(field.key); });
    tried([&] { (void)in.integer(field.key); });
    tried([&] { (void)in.number(field.key); });
    tried([&] { (void)in.flag(field.key); });
    tried([&] { (void)in.texts(field.key); });
    tried([&] { (void)in.integers(field.key); });
    tried([&] { (void)in.floats(field.key); });
  }
}

// True if the file was taken; then every span is inside it, and no byte belongs to two tensors.
bool holds_together(const std::string& bytes) {
  const std::vector<char> file(bytes.begin(), bytes.end());  // exactly as long, for AddressSanitizer
  std::optional<Gguf> in;
  test::start_counting();
  try {
    in = Gguf::parse(std::as_bytes(std::span(file)), "m");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input) << error.message();
    EXPECT_FALSE(error.hint().empty());
  }
  EXPECT_LE(test::peak_bytes(), file.size() + kLittle);
  if (!in) return false;

  const std::byte* const first = std::as_bytes(std::span(file)).data();
  std::vector<int> uses(file.size(), 0);
  for (const StoredTensor& entry : in->entries()) {
    const std::ptrdiff_t begin = entry.bytes.data() - first;
    EXPECT_GE(begin, 24);
    for (size_t i = 0; i < entry.bytes.size(); ++i) EXPECT_EQ(++uses.at(static_cast<size_t>(begin) + i), 1);
    EXPECT_EQ(&in->at(entry.name), &entry);
  }
  touch_all_values(*in);
  return true;
}

TEST(GgufProperty, RefusesEveryTruncationThatCutsMoreThanPadding) {
  const std::string file = small_file();
  ASSERT_TRUE(holds_together(file));
  const size_t padding = 26;
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_EQ(holds_together(file.substr(0, length)), length + padding >= file.size())
        << length << " of " << file.size();
  }
}

TEST(GgufProperty, SurvivesEveryHeaderBitFlipped) {
  const std::string file = small_file();
  const size_t header_end = file.size() - 160;
  int accepted = 0;
  for (size_t i = 0; i < header_end; ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[i] = static_cast<char>(static_cast<unsigned char>(flipped[i]) ^ (1u << bit));
      if (holds_together(flipped)) ++accepted;
    }
  }
  EXPECT_GT(accepted, 0);  // a letter of a name may become another
  EXPECT_LT(accepted, static_cast<int>(8 * header_end));
}

TEST(GgufProperty, SurvivesRandomDamage) {
  const std::string file = small_file();
  std::mt19937_64 random(20240607);
  const uint64_t edges[] = {0, 1, 0x7FFFFFFF, 0x80000000, 1ull << 32, INT64_MAX, UINT64_MAX};
  for (int round = 0; round < 6'000; ++round) {
    std::string damaged = file;
    for (uint64_t edits = random() % 4 + 1; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 4);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 32));
          break;
        default:
          damaged.replace(at, 8, u64(edges[random() % 7]));
          break;
      }
      if (damaged.empty()) damaged = file;
    }
    (void)holds_together(damaged);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Each integer of a small file, what it rightly is, and which of the edge values would do as well.
struct IntegerField {
  const char* what;
  unsigned bytes;
  uint64_t right;
  std::vector<uint64_t> also;
};

TEST(GgufProperty, JudgesEdgeValuesInEveryIntegerField) {
  const std::vector<IntegerField> fields{{"tensors", 8, 1, {}},     {"keys", 8, 2, {}},        {"key length", 8, 4, {}},
                                         {"text length", 8, 4, {}}, {"key length", 8, 1, {}},  {"array kind", 4, 4, {}},
                                         {"array count", 8, 2, {}}, {"name length", 8, 1, {}}, {"dims", 4, 2, {}},
                                         {"inner dim", 8, 1, {}},   {"outer dim", 8, 2, {1}},  {"type", 4, 24, {0, 1}},
                                         {"offset", 8, 0, {}}};
  const auto file_with = [&](size_t changed, uint64_t value) {
    const auto f = [&](size_t i) { return test::little(i == changed ? value : fields[i].right, fields[i].bytes); };
    std::string out = "GGUF" + u32(3) + f(0) + f(1);
    out += f(2) + "text" + u32(8) + f(3) + "word";
    out += f(4) + "a" + u32(9) + f(5) + f(6) + u64(0);
    out += f(7) + "x" + f(8) + f(9) + f(10) + f(11) + f(12);
    return padded(out) + std::string(32, 'd');
  };
  for (size_t i = 0; i < fields.size(); ++i) {
    const IntegerField& field = fields[i];
    for (const uint64_t v : {uint64_t{0}, uint64_t{1}, uint64_t{INT32_MAX}, uint64_t{1} << 31, uint64_t{1} << 32,
                             uint64_t{INT64_MAX}, uint64_t{1} << 63, UINT64_MAX}) {
      if (field.bytes == 4 && v > UINT32_MAX) continue;
      const bool right = v == field.right || std::ranges::find(field.also, v) != field.also.end();
      EXPECT_EQ(holds_together(file_with(i, v)), right) << field.what << " is " << v;
    }
  }
}

// Dimensions and offsets against the rules in 128 bits.
TEST(GgufProperty, JudgesSizesLikeWiderArithmetic) {
  using Wide = unsigned __int128;
  const uint64_t values[] = {0,          1,          4,         5,          32,        40, (1ull << 31) - 1,
                             1ull << 32, 1ull << 61, INT64_MAX, 1ull << 63, UINT64_MAX};
  int accepted = 0;
  for (const uint64_t inner : values) {
    for (const uint64_t outer : values) {
      for (const uint32_t type : {0U, 8U, 24U}) {
        const Wide block = type == 8 ? 32 : 1, size = type == 8 ? 34 : type == 0 ? 4 : 1;
        const Wide bytes = Wide{inner} * outer / block * size;
        const bool fit = inner <= INT64_MAX && outer <= INT64_MAX && Wide{inner} * outer <= UINT64_MAX;
        // The data has 160 bytes, so a tensor must end in its last 32, or leave nothing but padding.
        const bool right = fit && inner % block == 0 && bytes > 128 && bytes <= 160;
        const std::string file = gguf_of({}, {{.dims = {inner, outer}, .type = type}}, std::string(160, 'd'));
        EXPECT_EQ(holds_together(file), right) << inner << " x " << outer << " of type " << type;
        accepted += right ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(accepted, 7);  // f32: 1 x 40, 40 x 1; q8_0: 32 x 4; i8: 4 x 40, 40 x 4, 5 x 32, 32 x 5
}

TEST(GgufProperty, RefusesAbsurdCountsWithoutMemoryForThem) {
  const std::string room(1 << 20, '\0');
  for (const uint64_t count : {uint64_t{100'000}, uint64_t{1} << 31, uint64_t{1} << 62, UINT64_MAX}) {
    for (const std::string& file :
         {gguf_head(count, 0) + room, gguf_head(0, count) + room,
          gguf_head(0, 1) + key("a", 9, array(0, count * 32, room)),
          gguf_head(0, 1) + key("a", 9, array(8, count * 2, room)),
          gguf_head(0, 1) + key("a", 9, array(9, count * 2, room)), gguf_of({}, {{.dims = {count, count}}}, room)}) {
      EXPECT_FALSE(holds_together(file)) << count;
    }
  }
}

// The files that cost most for their size: as many of the smallest keys and tensors as the reader takes.
TEST(GgufProperty, HoldsTheLargestTablesInLittleMemory) {
  std::string keys = gguf_head(0, 100'000), tensors = gguf_head(100'000, 0);
  for (uint32_t i = 0; i < 100'000; ++i) {
    keys += key(u32(i), 0, "a");
    tensors += tensor_info({.name = u32(i), .dims = {0}});
  }
  tensors = padded(tensors);
  for (const std::string& file : {keys, tensors}) {
    test::start_counting();
    const Gguf in = Gguf::parse(bytes_of(file), "m");
    EXPECT_EQ(in.fields().size() + in.entries().size(), 100'000u);
    EXPECT_LE(test::peak_bytes(), file.size() + (32 << 20));
  }
}

}  // namespace gguf_property_test
}  // namespace qkv
