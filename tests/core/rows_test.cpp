#include "core/rows.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/says.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

Numbers numbers_of(const std::vector<Segment>& list) {
  Numbers out;
  for (const Segment& s : list) {
    for (const int32_t field : {s.request, s.first_row, s.rows, s.first_key, s.keys, s.position}) {
      out.push_back(static_cast<double>(field));
    }
  }
  return out;
}

TEST(Rows, OfABatchAreEqualSegments) {
  Pass p;
  const Rows rows = Rows::batch(p.cx, 2, 3);
  EXPECT_EQ(rows.rows, 6);
  EXPECT_EQ(rows.keys, 6);
  EXPECT_EQ(rows.longest_keys, 3);
  EXPECT_EQ(to_host(rows.positions), Numbers({0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(to_host(rows.segments), Numbers({0, 0, 3, 0, 3, 0, 1, 3, 3, 3, 3, 0}));
  EXPECT_EQ(to_host(rows.segments), numbers_of(rows.list));
}

TEST(Rows, OfPackedDocumentsFollowOneAnother) {
  Pass p;
  const std::vector<int32_t> lengths{2, 0, 3};
  const Rows rows = Rows::ragged(p.cx, lengths);
  EXPECT_EQ(rows.rows, 5);
  EXPECT_EQ(rows.longest_keys, 3);
  EXPECT_EQ(to_host(rows.positions), Numbers({0, 1, 0, 1, 2}));
  EXPECT_EQ(to_host(rows.segments), Numbers({0, 0, 2, 0, 2, 0, 1, 2, 0, 2, 0, 0, 2, 2, 3, 2, 3, 0}));
}

TEST(Rows, OfAPaddedBatchLeaveThePaddingToNobody) {
  Pass p;
  const std::vector<int32_t> lengths{1, 3};
  const Rows rows = Rows::padded(p.cx, lengths, 3);
  EXPECT_EQ(rows.rows, 6);
  EXPECT_EQ(rows.keys, 6);
  EXPECT_EQ(to_host(rows.positions), Numbers({0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(to_host(rows.segments), Numbers({0, 0, 1, 0, 1, 0, 1, 3, 3, 3, 3, 0}));
}

TEST(Rows, AcrossPairQueriesWithTheKeysOfTheSameSequence) {
  Pass p;
  const std::vector<int32_t> target{2, 1}, source{4, 3};
  const Rows rows = Rows::cross(p.cx, Rows::ragged(p.cx, target), Rows::padded(p.cx, source, 5));
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.keys, 10);
  EXPECT_EQ(rows.longest_keys, 4);
  EXPECT_EQ(to_host(rows.segments), Numbers({0, 0, 2, 0, 4, 0, 1, 2, 1, 5, 3, 0}));
}

// Kernels that clear no gaps and look for no shared keys stand on this.
TEST(Rows, ArePackedWhereTheyLeaveNoRowAndNoKeyOver) {
  Pass p;
  const std::vector<int32_t> lengths{2, 0, 3}, padded{1, 3};
  const Rows ragged = Rows::ragged(p.cx, lengths);
  EXPECT_TRUE(ragged.packed);
  EXPECT_EQ(ragged.longest_rows, 3);
  EXPECT_TRUE(Rows::batch(p.cx, 2, 3).packed);
  EXPECT_TRUE(Rows::cross(p.cx, ragged, Rows::ragged(p.cx, std::vector<int32_t>{4, 1, 2})).packed);
  EXPECT_FALSE(Rows::padded(p.cx, padded, 3).packed);
  EXPECT_FALSE(Rows::make(p.cx, {{.rows = 1, .keys = 12, .position = 11}}, 1, Rows::kPaged).packed);
  const Segment first{.rows = 2, .keys = 3};
  const auto packed = [&](const Segment& second, int64_t rows, int64_t keys) {
    return Rows::make(p.cx, {first, second}, rows, keys).packed;
  };
  EXPECT_TRUE(packed({.first_row = 2, .rows = 4, .first_key = 3, .keys = 1}, 6, 4));
  EXPECT_FALSE(packed({.first_row = 2, .rows = 4, .first_key = 3, .keys = 1}, 7, 4));  // a row over
  EXPECT_FALSE(packed({.first_row = 2, .rows = 4, .first_key = 3, .keys = 1}, 6, 5));  // a key over
  EXPECT_FALSE(packed({.first_row = 3, .rows = 3, .first_key = 3, .keys = 1}, 6, 4));  // a gap of rows
  EXPECT_FALSE(packed({.first_row = 2, .rows = 4, .first_key = 0, .keys = 1}, 6, 4));  // a key of both
  const std::vector<Segment> backwards{{.first_row = 4, .rows = 2, .keys = 3}, {.rows = 4, .first_key = 3, .keys = 1}};
  EXPECT_FALSE(Rows::make(p.cx, backwards, 6, 4).packed);
}

TEST(Rows, AcrossUnequalBatchesAreRefused) {
  Pass p;
  const Rows two = Rows::batch(p.cx, 2, 3), three = Rows::batch(p.cx, 3, 3);
  expect_error([&] { Rows::cross(p.cx, two, three); }, {"2 query segments", "3 key segments"});
}

TEST(Rows, OfADecodingStepStandAtTheEndOfTheirKeys) {
  Pass p;
  const Rows rows = Rows::make(p.cx, {{.rows = 1, .keys = 12, .position = 11}}, 1, Rows::kPaged);
  EXPECT_EQ(to_host(rows.positions), Numbers({11}));
  EXPECT_EQ(rows.longest_keys, 12);
  EXPECT_EQ(rows.keys, Rows::kPaged);
}

TEST(Rows, OfNothingAreEmpty) {
  Pass p;
  const Rows rows = Rows::batch(p.cx, 0, 7);
  EXPECT_EQ(rows.rows, 0);
  EXPECT_EQ(rows.segments.shape(), Shape({0, 6}));
  EXPECT_EQ(rows.positions.count(), 0);
  EXPECT_EQ(rows.longest_keys, 0);
}

TEST(Rows, ThatOverlapAreRefused) {
  Pass p;
  expect_says(
      [&] {
        Rows::make(p.cx, {{.first_row = 0, .rows = 3}, {.first_row = 2, .rows = 2}}, 5, 5);
      },
      {"row 2", "two segments", "1"});
}

TEST(Rows, ThatLeaveTheirRangeAreRefused) {
  Pass p;
  const auto make = [&](Segment s) { return [&p, s] { Rows::make(p.cx, {s}, 4, 6); }; };
  expect_says(make({.first_row = 2, .rows = 3}), {"segment 0", "rows [2, 5)", "4"});
  expect_says(make({.first_row = -1, .rows = 1}), {"rows [-1, 0)"});
  expect_says(make({.rows = -1}), {"rows [0, -1)"});
  expect_says(make({.rows = 1, .first_key = 4, .keys = 3}), {"segment 0", "keys [4, 7)", "6"});
  expect_says(make({.rows = 1, .first_key = -2, .keys = 1}), {"keys [-2, -1)"});
  expect_says(make({.rows = 1, .keys = -3}), {"keys [0, -3)"});
  const int32_t most = std::numeric_limits<int32_t>::max();
  expect_says(make({.first_row = most, .rows = most}), {"rows [2147483647, 4294967294)"});
}

TEST(Rows, OfASequenceLongerThanItsPlaceAreRefused) {
  Pass p;
  const std::vector<int32_t> lengths{2, 9};
  expect_says([&] { Rows::padded(p.cx, lengths, 8); }, {"9", "8"});
  const std::vector<int32_t> negative{2, -1};
  expect_says([&] { Rows::ragged(p.cx, negative); }, {"rows", "-1"});
}

TEST(Rows, OfNegativeOrHugeNumberAreAnErrorOfOurs) {
  Pass p;
  expect_says([&] { Rows::make(p.cx, {}, -1, 0); }, {"rows", "-1"});
  expect_says([&] { Rows::batch(p.cx, -1, 4); }, {"rows", "-1"});
  expect_says([&] { Rows::batch(p.cx, 1, -4); }, {"rows", "-4"});
  expect_says([&] { Rows::batch(p.cx, 1, (int64_t{1} << 32) + 1); }, {"rows", "4294967297"});
}

TEST(Rows, LieWhereThePlanSaysWithoutTouchingMemory) {
  Pass p({.kernels = &Kernels::none(), .mode = Arena::Mode::plan});
  const Rows rows = Rows::batch(p.cx, 2, 3);
  EXPECT_EQ(rows.segments.shape(), Shape({2, 6}));
  EXPECT_EQ(p.arena.used(), 64 + 64);
}

}  // namespace
}  // namespace qkv::test
