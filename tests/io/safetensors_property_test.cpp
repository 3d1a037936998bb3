// For any bytes: an Error of kind input, or a file whose spans are inside it and cover it exactly once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/allocations.h"
#include "io/safetensors.h"
#include "io/safetensors_bytes.h"

namespace qkv {
namespace safetensors_property_test {

using test::bytes_of;
using test::Described;
using test::described;
using test::file_of;
using test::header_of;

std::string small_file() {
  const std::string header = fmt::format(R"({{"__metadata__":{{"format":"pt"}},{},{}}}  )",
                                         described({"b", "I16", {3}, 8, 14}), described({"a", "F32", {2, 1}, 0, 8}));
  return file_of(header, "8 bytes.SHORTS");
}

std::optional<Safetensors> taken(const std::vector<char>& file) {
  try {
    return Safetensors::parse(std::as_bytes(std::span(file)), "m");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input) << error.message();
    return std::nullopt;
  }
}

// True if the file was taken; then its spans must be the bytes behind the header, each exactly once.
bool holds_together(const std::string& text) {
  const std::vector<char> file(text.begin(),
                               text.end());  // exactly as long, so that AddressSanitizer sees one byte too far
  const std::optional<Safetensors> st = taken(file);
  if (!st) return false;

  const std::byte* const first = std::as_bytes(std::span(file)).data();
  std::vector<int> uses(file.size(), 0);
  for (const StoredTensor& entry : st->entries()) {
    const std::ptrdiff_t begin = entry.bytes.data() - first;
    EXPECT_GE(begin, 8);
    EXPECT_LE(static_cast<size_t>(begin) + entry.bytes.size(), file.size());
    for (size_t i = 0; i < entry.bytes.size(); ++i) ++uses.at(static_cast<size_t>(begin) + i);
  }
  const auto data = std::find(uses.begin(), uses.end(), 1);
  EXPECT_TRUE(std::all_of(data, uses.end(), [](int n) { return n == 1; }));
  return true;
}

TEST(SafetensorsProperty, RefusesEveryTruncation) {
  const std::string file = small_file();
  ASSERT_TRUE(holds_together(file));
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(holds_together(file.substr(0, length))) << "cut to " << length << " of " << file.size();
  }
}

TEST(SafetensorsProperty, RefusesEveryByteAppended) {
  for (int c = 0; c < 256; ++c) EXPECT_FALSE(holds_together(small_file() + static_cast<char>(c))) << c;
}

TEST(SafetensorsProperty, SurvivesEveryHeaderBitFlipped) {
  const std::string file = small_file();
  const size_t header_end = file.size() - 14;
  int accepted = 0;
  for (size_t i = 0; i < header_end; ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[i] = static_cast<char>(static_cast<unsigned char>(flipped[i]) ^ (1u << bit));
      if (holds_together(flipped)) ++accepted;
    }
  }
  EXPECT_GT(accepted, 0);  // a letter of a name may become another
  EXPECT_LT(accepted, static_cast<int>(header_end));
}

TEST(SafetensorsProperty, SurvivesRandomDamage) {
  const std::string file = small_file();
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 20'000; ++round) {
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
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 8));
          break;
        default:
          damaged[at] = "{}[]\",:0123456789 -.eE"[random() % 22];
          break;
      }
      if (damaged.empty()) damaged = file;
    }
    (void)holds_together(damaged);
    // With the length field made right, the damage reaches the JSON and the offsets.
    if (damaged.size() > 22)
      (void)holds_together(file_of(damaged.substr(8, damaged.size() - 22), damaged.substr(damaged.size() - 14)));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Every integer of the description through the values where arithmetic breaks, against the rules in 128 bits.
TEST(SafetensorsProperty, JudgesBoundaryIntegersLikeWiderArithmetic) {
  const uint64_t values[] = {
      0, 1, 8, (1ull << 31) - 1, 1ull << 31, 1ull << 32, 1ull << 61, (1ull << 63) - 1, 1ull << 63, UINT64_MAX};
  int accepted = 0;
  for (const uint64_t rows : values) {
    for (const uint64_t columns : values) {
      for (const uint64_t begin : values) {
        for (const uint64_t end : values) {
          for (const uint64_t size : {0ull, 8ull}) {
            using Wide = unsigned __int128;
            const bool dims_fit = rows <= INT64_MAX && columns <= INT64_MAX;
            const Wide elements = Wide{rows} * columns;
            const bool right =
                dims_fit && begin == 0 && end == size && elements <= UINT64_MAX && elements * 8 == Wide{size} * 8;
            const std::string file =
                file_of(header_of({{"x", "U8", {rows, columns}, begin, end}}), std::string(size, 'x'));
            EXPECT_EQ(holds_together(file), right)
                << rows << " x " << columns << " in [" << begin << ", " << end << ") of " << size;
            accepted += right ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_EQ(accepted, 2 + 15);  // 1 x 8 and 8 x 1; 0 x any and any x 0 up to 2^63 - 1
}

struct Written {
  Described info;
  std::string bytes;
};

// Random tensors back to back.
std::vector<Written> random_tensors(std::mt19937_64& random) {
  const std::pair<const char*, uint64_t> dtypes[] = {{"F32", 4}, {"BF16", 2}, {"I64", 8}, {"BOOL", 1}, {"F8_E4M3", 1}};
  std::vector<Written> out;
  uint64_t end = 0;
  for (uint64_t i = random() % 12; i > 0; --i) {
    const auto& [dtype, size] = dtypes[random() % 5];
    Written w{{fmt::format("t{}.{}", random() % 1'000'000, i), dtype, {}, end, 0}, ""};
    uint64_t count = 1;
    for (uint64_t rank = random() % 5; rank > 0; --rank) {
      w.info.shape.push_back(random() % 5);
      count *= w.info.shape.back();
    }
    w.bytes.resize(count * size);
    for (char& c : w.bytes) c = static_cast<char>(random());
    end = w.info.end = w.info.begin + w.bytes.size();
    out.push_back(w);
  }
  return out;
}

TEST(SafetensorsProperty, GivesBackWhatWasWritten) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2'000; ++round) {
    const std::vector<Written> written = random_tensors(random);
    std::string data;
    std::vector<Described> infos;
    for (const Written& w : written) {
      data += w.bytes;
      infos.push_back(w.info);
    }
    std::shuffle(infos.begin(), infos.end(), random);
    const std::string header = header_of(infos) + std::string(random() % 9, ' ');
    const std::string file = file_of(header, data);
    ASSERT_TRUE(holds_together(file)) << header;

    const Safetensors st = Safetensors::parse(bytes_of(file), "m");
    ASSERT_EQ(st.entries().size(), written.size()) << header;
    for (const Written& want : written) {
      const StoredTensor& got = st.at(want.info.name);
      EXPECT_EQ(got.dtype, want.info.dtype);
      EXPECT_EQ(std::vector<uint64_t>(got.shape.begin(), got.shape.end()), want.info.shape);
      EXPECT_TRUE(std::ranges::equal(got.bytes, bytes_of(want.bytes))) << want.info.name << " in " << header;
    }
  }
}

// The headers that cost most for their size: many of the smallest tensors, many keys, many empty lists.
TEST(SafetensorsProperty, HoldsTheLargestHeadersInLittleMemory) {
  std::string tensors = "{", metadata = R"({"__metadata__":{)", lists = R"({"x":{"shape":[)";
  for (int i = 0; i < 20'000; ++i) {
    tensors += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i > 0 ? "," : "", i);
    if (i < 10'000) metadata += fmt::format(R"({}"{}":"")", i > 0 ? "," : "", i);
  }
  for (int i = 0; i < 3'000'000; ++i) lists += "[],";
  const size_t most_per_byte[] = {10, 16, 1};
  int which = 0;
  for (const std::string& header : {tensors + "}", metadata + "}}", lists + "[]]}}"}) {
    const std::string file = file_of(header, "");
    test::start_counting();
    const bool right = taken(std::vector<char>(file.begin(), file.end())).has_value();
    EXPECT_EQ(right, which < 2);
    EXPECT_LE(test::peak_bytes(), most_per_byte[which] * file.size() + (4 << 20));
    ++which;
  }
}

}  // namespace safetensors_property_test
}  // namespace qkv
