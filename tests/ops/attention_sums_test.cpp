// Sums of attention statistics over groups of rows, against plain loops over the rows.
#include <gtest/gtest.h>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_sums_test {

constexpr int64_t kRows = 45, kHeads = 5, kClasses = 7;
const std::vector<int32_t> kOffsets{0, 1, -1};

struct Seen {
  std::vector<Numbers> numbers;  // entropy, distance, first, at_offset, in_class
  std::vector<int32_t> argmax;
  ops::StatsRowsOnHost rows;

  Seen() {
    for (const int64_t each : {int64_t{1}, int64_t{1}, int64_t{1}, std::ssize(kOffsets), kClasses}) {
      numbers.push_back(normals(numbers.size() + 1, kRows * kHeads * each));
    }
    for (int32_t i = 0; i < kRows * kHeads; ++i) argmax.push_back(i * i % 23 - 1);
    // Row 3 is in no group; the last labels are too few for the highest keys.
    rows.groups = {{.first_row = 4, .rows = 30, .position = 2, .first_label = 10},
                   {.first_row = 0, .rows = 3, .position = 9},
                   {.first_row = 40, .rows = 0},
                   {.first_row = 34, .rows = 11, .position = 0, .first_label = 25}};
    for (int32_t r = 0; r < kRows; ++r) {
      rows.weights.push_back({r % 5 == 0 ? 0.0 : 1.0, 1.0 / (r + 2), r % 3 == 0 ? 1.0 : 0.0});
      rows.wanted.push_back({r % 4, r % 7 == 0 ? -1 : 2});
    }
    for (int32_t i = 0; i < 40; ++i) rows.labels.push_back(i % 4);
  }

  AttentionStats upload(Pass& pass, DType dtype) const {
    const auto put = [&](size_t which, const Shape& shape) { return pass.input(numbers[which], shape, dtype); };
    return {.entropy = put(0, {kRows, kHeads}),
            .distance = put(1, {kRows, kHeads}),
            .first = put(2, {kRows, kHeads}),
            .argmax = pass.cx.upload(argmax).view({kRows, kHeads}),
            .offsets = pass.cx.upload(kOffsets),
            .at_offset = put(3, {kRows, kHeads, std::ssize(kOffsets)}),
            .in_class = put(4, {kRows, kHeads, kClasses})};
  }
};

double by_hand(const Seen& seen, const ops::StatsRowsOnHost::Group& group, int64_t head, int64_t column,
               const StatsColumns& at) {
  double sum = 0;
  for (int32_t r = group.first_row; r < group.first_row + group.rows; ++r) {
    const auto row = static_cast<size_t>(r), i = static_cast<size_t>(r * kHeads + head);
    const auto& [plain, of_entropy, again] = seen.rows.weights[row];
    const auto value = [&](size_t which, int64_t each, int64_t c) {
      return seen.numbers[which][i * static_cast<size_t>(each) + static_cast<size_t>(c)];
    };
    const int32_t key = seen.argmax[i];
    if (column < 3) {
      sum += (column == StatsColumns::entropy ? of_entropy : plain) * value(static_cast<size_t>(column), 1, 0);
    } else if (column < at.strongest()) {
      sum += plain * value(3, at.offsets, column - at.at_offset());
    } else if (column < at.in_class()) {
      const int32_t offset = kOffsets[static_cast<size_t>(column - at.strongest())];
      if (key == group.position + r - group.first_row - offset) sum += plain;
    } else if (column < at.labelled()) {
      const bool second = column >= at.again();
      sum += (second ? again : plain) * value(4, kClasses, (column - at.in_class()) % kClasses);
    } else {
      const auto label = static_cast<size_t>(group.first_label + key);
      const int32_t wanted = seen.rows.wanted[row][static_cast<size_t>(column - at.labelled())];
      if (key >= 0 && label < seen.rows.labels.size() && seen.rows.labels[label] == wanted) sum += plain;
    }
  }
  return sum;
}

TEST(AttentionSums, AreThoseOfTheRowsOfEachGroup) {
  const Seen seen;
  const StatsColumns at{.offsets = std::ssize(kOffsets), .classes = kClasses, .wanted = kMostWanted};
  for (const Kernels* table : kernels::all_tables()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Pass pass({.kernels = table});
      const auto groups = std::ssize(seen.rows.groups);
      const Tensor y = pass.zeros({groups, kHeads, at.count()}, DType::f64);
      ops::attention_sums(pass.cx, seen.upload(pass, dtype), ops::stats_rows(pass.cx, seen.rows), y);
      const Numbers got = to_host(y);
      for (int64_t i = 0; i < y.count(); ++i) {
        const auto& group = seen.rows.groups[static_cast<size_t>(i / at.count() / kHeads)];
        const double right = by_hand(seen, group, i / at.count() % kHeads, i % at.count(), at);
        ASSERT_NEAR(got[static_cast<size_t>(i)], right, dtype == DType::f64 ? 1e-12 : 1e-5)
            << table->name << " column " << i % at.count() << " of group " << i / at.count() / kHeads;
      }
    }
  }
}

// Without offsets, classes and labels there are three numbers.
TEST(AttentionSums, LeaveOutWhatIsNotAskedFor) {
  Seen seen;
  seen.rows.wanted.clear();
  const StatsColumns at;
  for (const Kernels* table : kernels::all_tables()) {
    Pass pass({.kernels = table});
    AttentionStats stats = seen.upload(pass, DType::f64);
    stats.at_offset = stats.in_class = stats.offsets = {};
    const Tensor y = pass.zeros({std::ssize(seen.rows.groups), kHeads, 3}, DType::f64);
    ops::attention_sums(pass.cx, stats, ops::stats_rows(pass.cx, seen.rows), y);
    EXPECT_NEAR(to_host(y)[1], by_hand(seen, seen.rows.groups[0], 0, StatsColumns::distance, at), 1e-12) << table->name;
  }
}

}  // namespace attention_sums_test
}  // namespace qkv::test
