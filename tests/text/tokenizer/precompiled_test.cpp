#include "text/tokenizer/pipeline/precompiled.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/expect_error.h"
#include "text/tokenizer/charsmap_bytes.h"

namespace qkv {
namespace {

using test::Charsmap;
using Rules = std::map<std::string, std::string>;

const Rules kRules = {
    {"A", "a"},  {"e\u0301", "é"}, {"①", "1"},     {"ﬁ", "fi"},  {"\t", " "},
    {"\r", " "}, {"\r\n", "\n"},   {"\u200b", ""}, {"abc", "X"},
};

Precompiled read(const Charsmap& map) {
  return Precompiled::parse(map.bytes(), "map");
}

TEST(Precompiled, LongestRuleWins) {
  const Precompiled map = read(Charsmap(kRules));
  EXPECT_EQ(map.longest("abcd").length, 3U);
  EXPECT_EQ(map.longest("abcd").replacement, "X");
  EXPECT_EQ(map.longest("abx").length, 0U);
  EXPECT_EQ(map.longest("\r\nx").length, 2U);
  EXPECT_EQ(map.longest("\rx").length, 1U);
  EXPECT_EQ(map.longest("").length, 0U);
  EXPECT_EQ(map.longest(std::string_view("\0A", 2)).length, 0U);
  EXPECT_EQ(map.longest("\u200bx").length, 3U);
  EXPECT_EQ(map.longest("\u200bx").replacement, "");
}

TEST(Precompiled, GraphemesAreReplacedWhole) {
  const Precompiled map = read(Charsmap(kRules));
  std::vector<uint32_t> origin;
  EXPECT_EQ(map.normalize("A①ﬁB", &origin), "a1fiB");
  EXPECT_EQ(origin, (std::vector<uint32_t>{0, 1, 4, 4, 7}));
  // CR LF is one grapheme; the shortest rule that matches at its start replaces all of it.
  EXPECT_EQ(map.normalize("x\r\ny", &origin), "x y");
  EXPECT_EQ(origin, (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(map.normalize("e\u0301", nullptr), "é");
  EXPECT_EQ(map.normalize("A\u0301", nullptr), "a");  // the mark is replaced together with its letter
  EXPECT_EQ(map.normalize("A\u0301\u0301\u0301", nullptr),
            "a\u0301\u0301\u0301");                 // seven bytes: character by character
  EXPECT_EQ(map.normalize("abc", nullptr), "abc");  // rules do not cross graphemes
}

TEST(Precompiled, KeepsBytesThatAreNoText) {
  const Precompiled map = read(Charsmap(kRules));
  std::vector<uint32_t> origin;
  EXPECT_EQ(map.normalize("\xff\xe2\x80"
                          "A\xc3",
                          &origin),
            "\xff\xe2\x80"
            "a\xc3");
  EXPECT_EQ(origin, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(map.normalize(std::string_view("\0A\0", 3), nullptr), std::string("\0a\0", 3));
}

TEST(Precompiled, RefusesWhatLeadsOutOfTheMap) {
  const std::string good = Charsmap(kRules).bytes();
  expect_error([&] { Precompiled::parse(good.substr(0, 7), "m"); }, {"m: a character map of 7 bytes"});
  expect_error([&] { Precompiled::parse(std::string(8, '\0'), "m"); }, {"its trie has 0 bytes"});
  expect_error([&] { Precompiled::parse("\xff\xff\xff\x7f" + good.substr(4), "m"); },
               {"its trie has 2147483647 bytes"});
  expect_error([&] { Precompiled::parse("\xfc\xff\xff\xff" + good.substr(4), "m"); },
               {"its trie has 4294967292 bytes"});

  Charsmap out(kRules);
  out.units[0] = 0x3fffffU << 10;
  expect_error([&] { read(out); }, {"leads to unit 4194303 but has"});
  Charsmap circle(kRules);
  const uint32_t root = circle.block_of[""];
  circle.units[root ^ 'A'] = (uint32_t{'A'} << 10) | 'A';  // a cycle to the root's children
  expect_error([&] { read(circle); }, {"runs in a circle"});
  Charsmap far(kRules);
  far.units[far.block_of["A"]] = (1U << 31) | 12345;
  expect_error([&] { read(far); }, {"points at byte 12345 of"});
  Charsmap half(Rules{{"A", "é"}});
  half.units[half.block_of["A"]] |= 1;
  expect_error([&] { read(half); }, {"middle of a character"});
  Charsmap latin(Rules{{"A", "\xe9"}});
  expect_error([&] { read(latin); }, {"not UTF-8"});
  Charsmap deep(Rules{{std::string(300, 'x'), "y"}});
  expect_error([&] { read(deep); }, {"too deep"});
}

TEST(Precompiled, RandomBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& noise, uint32_t where, uint8_t flip) {
    std::string bytes = Charsmap(Rules{{"A", "a"}, {"ab", "X"}}).bytes();
    bytes[where % bytes.size()] = static_cast<char>(flip);
    for (size_t i = 0; i < noise.size() && i < 3; ++i)
      bytes[(where * 31 + i * 977) % bytes.size()] = static_cast<char>(noise[i]);
    if (where % 3 == 0) bytes.resize(where % bytes.size());
    const std::string text(noise.begin(), noise.end());
    const auto error = error_of([&] {
      const Precompiled map = Precompiled::parse(bytes, "noise");
      std::vector<uint32_t> origin;
      const std::string out = map.normalize(text + "Aab", &origin);
      RC_ASSERT(out.size() == origin.size());
      for (size_t at = 0; at < text.size(); ++at) map.longest(std::string_view(text).substr(at));
    });
    if (error) RC_ASSERT(error->kind() == Error::Kind::input);
  }));
}

}  // namespace
}  // namespace qkv
