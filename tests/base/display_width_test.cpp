#include "base/display_width.h"

#include <gtest/gtest.h>
#include <locale.h>
#include <wchar.h>

#include <string>

namespace qkv {
namespace {

std::string utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
}

TEST(DisplayWidth, Texts) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("loss 1.5"), 8);
  EXPECT_EQ(display_width("训练"), 4);
  EXPECT_EQ(display_width("读取 model.gguf：完成"), 4 + 1 + 10 + 2 + 4);
  EXPECT_EQ(display_width("日本語ｶﾅ"), 6 + 2);  // halfwidth katakana
  EXPECT_EQ(display_width("한국어"), 6);
  EXPECT_EQ(display_width("e\u0301te\u0301"), 3);  // combining accents
  EXPECT_EQ(display_width("\U0001F600"), 2);
  EXPECT_EQ(display_width("\U00020000"), 2);
  EXPECT_EQ(display_width("a\tb\x1b"), 2);
}

TEST(DisplayWidth, BrokenBytesTakeACellEach) {
  EXPECT_EQ(display_width("\xFF"), 1);
  EXPECT_EQ(display_width("\xE8\xAE"), 2);          // cut short
  EXPECT_EQ(display_width("\xC0\xAF"), 2);          // overlong
  EXPECT_EQ(display_width("\xE0\x80\xAF"), 3);      // overlong
  EXPECT_EQ(display_width("\xED\xA0\x80"), 3);      // a surrogate
  EXPECT_EQ(display_width("\xF4\x90\x80\x80"), 4);  // above U+10FFFF
  EXPECT_EQ(display_width("\xE8训"), 3);
}

// The C library's own table is the judge, where this machine has a UTF-8 locale.
TEST(DisplayWidth, AgreesWithTheCLibrary) {
  const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) GTEST_SKIP() << "no locale C.UTF-8";
  const locale_t before = ::uselocale(locale);
  const struct {
    char32_t first, last;
  } kBlocks[] = {
      {0x20, 0x7E},     {0xA1, 0xAC},     {0xAE, 0x58F},      {0x1E00, 0x1FFF},   {0x2010, 0x2027},
      {0x2070, 0x23FF}, {0x2500, 0x27BF}, {0x2E80, 0x4DBF},   {0x4E00, 0xA4CF},   {0xAC00, 0xD7A3},
      {0xF900, 0xFAFF}, {0xFE30, 0xFFEF}, {0x1F300, 0x1F64F}, {0x20000, 0x2A6DF}, {0x1100, 0x11FF},
  };
  int compared = 0;
  for (const auto& [first, last] : kBlocks) {
    for (char32_t c = first; c <= last; ++c) {
      const int truth = ::wcwidth(static_cast<wchar_t>(c));
      if (truth < 0) continue;  // not assigned
      ++compared;
      EXPECT_EQ(display_width(utf8(c)), truth) << std::hex << "U+" << static_cast<unsigned>(c);
    }
  }
  // Everywhere else a text may count as wider than it is, never as narrower.
  for (char32_t c = 0xA1; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    EXPECT_GE(display_width(utf8(c)), ::wcwidth(static_cast<wchar_t>(c))) << std::hex << static_cast<unsigned>(c);
  }
  ::uselocale(before);
  ::freelocale(locale);
  EXPECT_GT(compared, 80'000);
}

TEST(FitWidth, CutsBetweenCharacters) {
  EXPECT_EQ(fit_width("训练中", 6), "训练中");
  EXPECT_EQ(fit_width("训练中", 5), "训练");
  EXPECT_EQ(fit_width("训练中", 1), "");
  EXPECT_EQ(fit_width("a训b", 3), "a训");
  EXPECT_EQ(fit_width("e\u0301x", 1), "e\u0301");  // an accent goes with its letter
  EXPECT_EQ(fit_width("abc", 0), "");
  EXPECT_EQ(fit_width("abc", -1), "");
}

}  // namespace
}  // namespace qkv
