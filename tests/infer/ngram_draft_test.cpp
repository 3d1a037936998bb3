#include "infer/ngram_draft.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "base/expect_error.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

Ids searched(const Ids& text, const DraftOptions& o) {
  for (int64_t n = o.longest; n >= o.shortest; --n) {
    const auto size = static_cast<int64_t>(text.size());
    for (int64_t end = size - 1; end >= n; --end) {
      if (!std::equal(text.end() - n, text.end(), text.begin() + (end - n))) continue;
      return {text.begin() + end, text.begin() + std::min(end + o.most, size)};
    }
  }
  return {};
}

TEST(NgramDraft, ByHand) {
  EXPECT_EQ(draft(Ids{1, 2, 3, 4, 5, 1, 2}, {}), (Ids{3, 4, 5, 1, 2}));
  EXPECT_EQ(draft(Ids{1, 2, 3, 4, 5, 1, 2}, {.most = 2}), (Ids{3, 4}));
  EXPECT_EQ(draft(Ids{1, 2, 3, 9, 2, 3, 8, 2, 3}, {.most = 1}), (Ids{8}));        // the last place
  EXPECT_EQ(draft(Ids{1, 2, 3, 9, 4, 2, 3, 8, 1, 2, 3}, {.most = 1}), (Ids{9}));  // the longer n-gram before the later
  EXPECT_EQ(draft(Ids{7, 7, 7, 7}, {}), (Ids{7}));                                // places may overlap
  EXPECT_EQ(draft(Ids{1, 2, 3, 2}, {}), Ids{});                                   // one token is too short
  EXPECT_EQ(draft(Ids{1, 2, 3, 2}, {.shortest = 1}), (Ids{3, 2}));
  EXPECT_EQ(draft(Ids{}, {}), Ids{});
  EXPECT_EQ(draft(Ids{2147483647, 0, 5, 2147483647, 0}, {.most = 1}), (Ids{5}));
}

TEST(NgramDraft, AfterEveryTokenItIsWhatASearchFinds) {
  EXPECT_TRUE(rc::check([] {
    const DraftOptions o{.most = *rc::gen::inRange<int64_t>(1, 10),
                         .longest = *rc::gen::inRange<int64_t>(3, 7),
                         .shortest = *rc::gen::inRange<int64_t>(1, 4)};
    const auto words = *rc::gen::element(2, 3, 10, 40);
    const Ids all = *rc::gen::container<Ids>(200, rc::gen::inRange(0, words));
    NgramDraft index(o);
    Ids text;
    for (const int32_t id : all) {
      text.push_back(id);
      index.add({&id, 1});
      RC_ASSERT(index.propose() == searched(text, o));
    }
    RC_ASSERT(draft(text, o) == searched(text, o));
  }));
}

TEST(NgramDraft, RefusesWhatItCannotLookFor) {
  expect_error([] { NgramDraft({.most = 0}); }, {"0", "1 to 256"});
  expect_error([] { NgramDraft({.most = 257}); }, {"257", "1 to 256"});
  expect_error([] { NgramDraft({.longest = 17}); }, {"17", "1 to 16"});
  expect_error([] { NgramDraft({.longest = 2, .shortest = 3}); }, {"from 3 to 2"});
  expect_error([] { NgramDraft({.shortest = 0}); }, {"from 0"});
}

}  // namespace
}  // namespace qkv
