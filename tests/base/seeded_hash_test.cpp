// Names that are chosen to collide.
#include "base/seeded_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/json_key_set.h"

namespace qkv {
namespace {

constexpr uint64_t kMultiplier = 0xC6A4A7935BD1E995U;  // of MurmurHash64A, which std::hash of libstdc++ is

uint64_t mixed(uint64_t word) {
  word *= kMultiplier;
  return (word ^ word >> 47) * kMultiplier;
}

uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Strings of 16 ASCII characters with the same std::hash: for any first word there is a second one.
std::vector<std::string> colliding_names(size_t count) {
  const uint64_t start = 0xC70F6907U ^ 16 * kMultiplier, undo = inverse_of(kMultiplier);
  const auto joined = [](uint64_t first, uint64_t second) {
    std::string text(16, ' ');
    std::memcpy(text.data(), &first, 8);
    std::memcpy(text.data() + 8, &second, 8);
    return text;
  };
  uint64_t wanted = 0;
  std::mt19937_64 random(5);
  std::vector<std::string> names;
  while (names.size() < count) {
    const uint64_t first = (random() & 0x1F1F1F1F1F1F1F1FU) | 0x4040404040404040U;  // @ to _
    const uint64_t before = (start ^ mixed(first)) * kMultiplier;
    uint64_t second = 0x4141414141414141U;
    if (names.empty()) {
      wanted = before ^ mixed(second);
    } else {
      second = (before ^ wanted) * undo;
      second = (second ^ second >> 47) * undo;
    }
    const std::string text = joined(first, second);
    const auto plain = [](char c) { return c >= 0 && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), plain)) names.push_back(text);
  }
  return names;
}

TEST(SeededHash, NamesThatCollideForStdHashDoNot) {
  const std::vector<std::string> names = colliding_names(2000);
  std::set<uint64_t> unseeded, seeded;
  for (const std::string& name : names) {
    unseeded.insert(std::hash<std::string>()(name));
    seeded.insert(seeded_hash(name));
  }
  ASSERT_EQ(unseeded.size(), 1U) << "these names say nothing";
  EXPECT_EQ(seeded.size(), names.size());
}

TEST(SeededHash, KeysOfAnObjectAreFoundAtOnce) {
  const std::vector<std::string> names = colliding_names(2000);
  std::string text;
  std::vector<size_t> places;
  for (const std::string& name : names) {
    places.push_back(text.size());
    text += '"';
    for (const char c : name) {
      constexpr char kHex[] = "0123456789abcdef";
      if (c < 0x20) {
        text += "\\u00";
        text += kHex[c >> 4];
        text += kHex[c & 15];
      } else {
        text += c;
      }
    }
    text += '"';
  }
  JsonKeySet keys(text);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_TRUE(keys.insert(names[i], text.data() + places[i]));
  EXPECT_FALSE(keys.insert(names[7], text.data() + places[7]));
  EXPECT_LT(keys.longest_search(), 400U) << "of " << names.size();
}

TEST(SeededHash, DependsOnEveryByteAndTheLength) {
  std::set<uint64_t> hashes;
  size_t count = 0;
  for (size_t length = 0; length < 20; ++length) {
    const std::string zeros(length, '\0');
    hashes.insert(seeded_hash(zeros));
    ++count;
    for (size_t i = 0; i < length; ++i, ++count) {
      std::string other = zeros;
      other[i] = 'x';
      hashes.insert(seeded_hash(other));
    }
  }
  EXPECT_EQ(hashes.size(), count);
  EXPECT_EQ(SeededHash()(std::string_view("a")), SeededHash()(std::string_view("a")));
}

}  // namespace
}  // namespace qkv
