// Rows of sinusoidal tables at the lengths where they grow.
#include "nn/position_tables.h"

#include <gtest/gtest.h>

#include "support/pass.h"

namespace qkv {
namespace {

// Looks up rows `first` to `end` of one sequence and compares each with the definition.
void expect_sinusoids(const Sinusoids& table, int64_t offset, int32_t first, int32_t end) {
  constexpr int64_t kWidth = 6;
  test::Pass pass;
  Rows rows = Rows::batch(pass.cx, 1, end - first);
  rows.list.front().position = first;
  const ops::Lookup found = table.lookup(pass.cx, rows, {});
  const test::Numbers ids = test::to_host(found.ids), numbers = test::to_host(found.numbers);
  const std::vector<float> right = ops::sinusoidal_positions(end + offset, kWidth, ops::Sinusoid::fairseq);
  for (int32_t p = first; p < end; ++p) {
    const auto row = static_cast<int64_t>(ids[static_cast<size_t>(p - first)]);
    ASSERT_LT(row, found.numbers.dim(0)) << "position " << p << " of a text of " << end << " is beyond the table";
    for (int64_t c = 0; c < kWidth; ++c) {
      EXPECT_EQ(static_cast<float>(numbers[static_cast<size_t>(row * kWidth + c)]),
                right[static_cast<size_t>((p + offset) * kWidth + c)])
          << "position " << p << ", column " << c;
    }
  }
}

// M2M-100 begins at row 2: texts of 255 and 256 positions end beyond the shortest table of 256.
TEST(SinusoidTable, HasRoomForTheOffset) {
  constexpr int64_t kOffset = 2;
  for (const int32_t length : {253, 254, 255, 256, 257}) {
    expect_sinusoids(Sinusoids(6, ops::Sinusoid::fairseq, kOffset), kOffset, 0, length);
  }
  const Sinusoids grows(6, ops::Sinusoid::fairseq, kOffset);  // as a text is decoded
  for (int32_t p = 250; p < 260; ++p) expect_sinusoids(grows, kOffset, p, p + 1);
}

}  // namespace
}  // namespace qkv
