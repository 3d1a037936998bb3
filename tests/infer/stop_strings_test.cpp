#include "infer/stop_strings.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/expect_error.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using Strings = std::vector<std::string>;

struct Shown {
  std::string text, which;
  Strings pieces;
};

Shown shown(const Strings& stops, const Strings& chunks) {
  StopStrings filter(stops);
  Shown out;
  for (const std::string& chunk : chunks) {
    const StopStrings::Fed fed = filter.feed(chunk);
    out.text += fed.show;
    out.which = fed.which;
    out.pieces.push_back(fed.show);
    EXPECT_EQ(fed.stopped, !fed.which.empty());
  }
  out.text += filter.finish();
  return out;
}

TEST(StopStrings, HoldsBackWhatMayBecomeAStop) {
  const Shown some = shown({"END"}, {"one E", "N", " two EN", "D three"});
  EXPECT_EQ(some.pieces, (Strings{"one ", "", "EN two ", ""}));
  EXPECT_EQ(some.text, "one EN two ");
  EXPECT_EQ(some.which, "END");
  EXPECT_EQ(shown({"END"}, {"one EN"}).text, "one EN");  // no more text: it was none
  EXPECT_EQ(shown({}, {"one", "two"}).pieces, (Strings{"one", "two"}));
  EXPECT_EQ(shown({"x"}, {"axb", "c"}).pieces, (Strings{"a", ""}));  // nothing after the stop
}

TEST(StopStrings, ChineseOverPieces) {
  const std::string text = "答案是四十二。結束。之後還有", stop = "結束。";
  for (size_t a = 0; a <= text.size(); ++a) {  // also in the middle of characters
    for (size_t b = a; b <= text.size(); ++b) {
      const Shown some = shown({stop}, {text.substr(0, a), text.substr(a, b - a), text.substr(b)});
      EXPECT_EQ(some.text, "答案是四十二。");
      EXPECT_EQ(some.which, stop);
      for (const std::string& piece : some.pieces) EXPECT_TRUE(is_utf8(piece)) << a << " " << b;
    }
  }
  EXPECT_EQ(shown({stop}, {"結", "論", "結束", "了"}).pieces, (Strings{"", "結論", "", "結束了"}));
}

TEST(StopStrings, OverlappingPrefixes) {
  EXPECT_EQ(shown({"aab"}, {"aaaab"}).text, "aa");
  EXPECT_EQ(shown({"aabaaax"}, {"aabaaabaaaxz"}).text, "aaba");
  EXPECT_EQ(shown({"abab", "abac"}, {"ab", "ab"}).text, "");
  EXPECT_EQ(shown({"abab", "abac"}, {"ab", "aac"}).text, "abaac");
  EXPECT_EQ(shown({"bcd", "c"}, {"ab", "cd"}).text, "ab");  // the one that is complete first
  EXPECT_EQ(shown({"c", "abc"}, {"zabc"}).which, "abc");    // complete at once: the longest
  EXPECT_EQ(shown({"<|end|>", "\n\n"}, {"a\n", "<|en", "d\n", "\nb"}).text, "a\n<|end");
}

// What it means: the shortest beginning of the text that ends with a stop string, without the longest such.
Shown defined(const Strings& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string which;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop) && stop.size() > which.size()) which = stop;
    }
    if (!which.empty()) return {.text = text.substr(0, end - which.size()), .which = which};
  }
  return {.text = text};
}

TEST(StopStrings, TheSameInWhateverPieces) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = *rc::gen::element<size_t>(2, 5);  // with two there are many beginnings that come to nothing
    const auto characters = [&](int low, int high) {
      const Strings alphabet = {"a", "終", "b", "結", "é"};
      std::string text;
      for (int n = *rc::gen::inRange(low, high); n > 0; --n) text += alphabet[*rc::gen::inRange<size_t>(0, letters)];
      return text;
    };
    Strings stops;
    for (int n = *rc::gen::inRange(0, 5); n > 0; --n) stops.push_back(characters(1, 8));
    const std::string text = characters(0, 60);
    Strings chunks;
    for (size_t at = 0; at < text.size();) {
      chunks.push_back(text.substr(at, *rc::gen::inRange<size_t>(1, 9)));
      at += chunks.back().size();
    }
    const Shown got = shown(stops, chunks), right = defined(stops, text);
    RC_ASSERT(got.text == right.text);
    RC_ASSERT(got.which == right.which);
    for (const std::string& piece : got.pieces) RC_ASSERT(is_utf8(piece));
  }));
}

// Nothing is held back longer than it must be.
TEST(StopStrings, ShowsAtOnceWhatCannotBeAStop) {
  StopStrings filter({"stop", "停止"});
  for (const char* piece : {"s", "t"}) EXPECT_EQ(filter.feed(piece).show, "");
  EXPECT_EQ(filter.feed("a").show, "sta");
  EXPECT_EQ(filter.feed("停").show, "");
  EXPECT_EQ(filter.feed("車").show, "停車");
  EXPECT_EQ(filter.feed("\xe8").show, "");  // a character that has begun
  EXPECT_EQ(filter.feed("\xbb\x8a").show, "車");
  EXPECT_EQ(filter
                .feed("\xff"
                      "a")
                .show,
            "\xff"
            "a");  // never a character: no reason to wait
}

TEST(StopStrings, HaveLimits) {
  expect_error([] { StopStrings(Strings(17, "a")); }, {"17", "16"});
  expect_error([] { StopStrings({"a", ""}); }, {"0 bytes", "1 to 256"});
  expect_error([] { StopStrings({std::string(1'000'000, 'a')}); }, {"1000000 bytes", "1 to 256"});
  expect_error([] { StopStrings({"\x80"}); }, {"not UTF-8"});
  StopStrings(Strings(16, std::string(256, 'a')));
}

}  // namespace
}  // namespace qkv
