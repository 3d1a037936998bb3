// Longrope: which angles a sequence of exactly the original context has.
#include <gtest/gtest.h>

#include "nn/position_tables.h"
#include "support/pass.h"

namespace qkv {
namespace long_rope_test {

constexpr int32_t kOriginal = 16;

// A head of two pairs, turned at every position of a sequence of this length.
test::Numbers turned(int32_t length, int32_t reach) {
  test::Pass pass;
  ops::RopeScaling scaling{.kind = ops::RopeScaling::Kind::longrope, .factor = 2, .original_context = kOriginal};
  scaling.short_factors = {1, 1};
  scaling.long_factors = {3, 5};
  const Rope rope({.base = 10000, .width = 4, .scaling = scaling});
  Rows rows = Rows::batch(pass.cx, 1, length);
  if (reach > 0) rows.reach = {reach};
  const test::Numbers x(static_cast<size_t>(4 * length), 1.0);
  return test::to_host(rope.forward(pass.cx, pass.input(x, {length, 1, 4}), rows));
}

test::Numbers first(const test::Numbers& all, size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(LongRope, TheOriginalContextItselfHasTheShortFactors) {
  const size_t half = size_t{4} * kOriginal / 2;
  const test::Numbers within = first(turned(kOriginal / 2, 0), half);
  EXPECT_EQ(first(turned(kOriginal, 0), half), within) << "as long as the original context";
  EXPECT_NE(first(turned(kOriginal + 1, 0), half), within) << "one token longer";
  // What counts is how long the sequence may become, not how long it is.
  EXPECT_EQ(turned(kOriginal / 2, kOriginal), within);
  EXPECT_EQ(turned(kOriginal / 2, kOriginal + 1), first(turned(kOriginal + 1, 0), half));
}

}  // namespace long_rope_test
}  // namespace qkv
