// Windows hold every token as a new one exactly once.
#include "data/text_windows.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "base/expect_error.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

Ids counting(int64_t count) {
  Ids ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(TextWindows, PredictEveryTokenOnceAfterBos) {
  rc::check([] {
    const auto tokens = *rc::gen::inRange<int64_t>(0, 200), length = *rc::gen::inRange<int64_t>(2, 40);
    const auto overlap = *rc::gen::inRange<int64_t>(0, length - 1);
    int32_t next = 0;
    for (const TokenText& text :
         cut_into_windows(counting(tokens), {.length = length, .overlap = overlap, .before = {-1}})) {
      RC_ASSERT(text.ids.front() == -1 && std::ssize(text.ids) <= length);
      const auto first = static_cast<size_t>(text.first);
      RC_ASSERT(text.first == (next == 0 ? 1 : 1 + overlap));
      for (int64_t i = 1; i < std::ssize(text.ids); ++i)
        RC_ASSERT(text.ids[static_cast<size_t>(i)] == next + i - text.first);
      for (size_t row = first - 1; row + 1 < text.ids.size(); ++row, ++next) RC_ASSERT(text.target(row) == next);
      if (first > 1) RC_ASSERT(text.target(first - 2) == TokenText::kIgnored);
    }
    RC_ASSERT(next == tokens);
  });
}

// Without BOS an overlap of one token leaves out the first token of the text alone.
TEST(TextWindows, PredictEveryTokenButTheFirstWithoutBos) {
  rc::check([] {
    const auto tokens = *rc::gen::inRange<int64_t>(0, 200), length = *rc::gen::inRange<int64_t>(2, 40);
    const auto overlap = *rc::gen::inRange<int64_t>(1, length);
    int64_t next = 1;
    for (const TextWindow& w : windows_of(tokens, {.length = length, .overlap = overlap})) {
      RC_ASSERT(w.begin == next && w.end > w.begin && w.end - w.context <= length);
      RC_ASSERT(w.begin - w.context == (next == 1 ? 1 : overlap));
      next = w.end;
    }
    RC_ASSERT(next == std::max<int64_t>(tokens, 1));
  });
}

TEST(TextWindows, CanStandSideBySide) {
  const std::vector<TokenText> texts = cut_into_windows(counting(9), {.length = 4});
  ASSERT_EQ(texts.size(), 2U) << "a window of one token predicts nothing";
  EXPECT_EQ(texts[1].ids, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(texts[1].first, 1);
  EXPECT_EQ(texts[1].target(0), 5);
  EXPECT_EQ(texts[1].target(3), TokenText::kIgnored);
}

TEST(TextWindows, HaveTokensAround) {
  const std::vector<TokenText> texts = cut_into_windows(counting(5), {.length = 5, .before = {100}, .after = {101}});
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0].ids, (Ids{100, 0, 1, 2, 101}));
  EXPECT_EQ(texts[1].ids, (Ids{100, 3, 4, 101}));
}

TEST(TextWindows, RefuseWhatHasNoNewTokens) {
  expect_error([] { windows_of(3, {.length = 1}); }, {"a window of 1 tokens"});
  expect_error([] { windows_of(3, {.length = 2, .before = {1}, .after = {2}}); }, {"a window of 2 tokens"});
  expect_error([] { windows_of(3, {.length = 4, .overlap = 4}); }, {"windows of 4 tokens that share 4"});
}

}  // namespace
}  // namespace qkv
