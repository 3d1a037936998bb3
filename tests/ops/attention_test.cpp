// Attention beyond its formula: the same bits alone and in a batch; no leak across documents, padding or time; the tapped
// pattern is the one it used.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/attention_sequences.h"

namespace qkv::test {
namespace attention_test {

TEST(Attention, AloneOrInABatchGivesTheSameBits) {
  const std::vector<Sequence> sequences{{1, 70}, {2, 1}, {3, 33}};
  for (const How& setup : setups()) {
    const auto together = attend_together(setup, sequences, {.causal = true});
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(attend_together(setup, {sequences[i]}, {.causal = true}).front(), together[i]);
    }
  }
}

// Causality, exactly: d z_i / d x_j == 0 for j > i.
TEST(Attention, TheFutureHasNoInfluenceAtAll) {
  const Sequence base(21, 12);
  Sequence changed = base;
  for (const auto& [numbers, each] :
       {std::pair{&changed.q, kHeads}, std::pair{&changed.k, kKvHeads}, std::pair{&changed.v, kKvHeads}}) {
    for (int64_t i = 7 * each * kWidth; i < 12 * each * kWidth; ++i) (*numbers)[static_cast<size_t>(i)] *= -3;
  }
  const auto before = attend_together({}, {base}, {.causal = true}).front();
  const auto after = attend_together({}, {changed}, {.causal = true}).front();
  EXPECT_EQ(part(before, 0, 7, kHeads * kWidth), part(after, 0, 7, kHeads * kWidth));
  EXPECT_NE(part(before, 7, 1, kHeads * kWidth), part(after, 7, 1, kHeads * kWidth));
}

TEST(Attention, DocumentsInOnePackDoNotSeeEachOther) {
  const std::vector<Sequence> packed{{31, 9}, {32, 6}};
  const std::vector<Sequence> other{{33, 9}, {32, 6}};
  const auto one = attend_together({}, packed, {}), two = attend_together({}, other, {});
  EXPECT_EQ(one[1], two[1]);
  EXPECT_NE(one[0], two[0]);
}

TEST(Attention, PaddingChangesNothingAndComesOutAsZeros) {
  Pass pass;
  const Sequence s(41, 5);
  const auto padded_to = [&](const Numbers& numbers, int64_t each, double filling) {
    Numbers padded = numbers;
    padded.resize(static_cast<size_t>(8 * each * kWidth), filling);
    return pass.input(padded, {8, each, kWidth});
  };
  for (const double filling : {0.0, 1e30, std::nan("")}) {  // any values in the padding
    const Rows rows = Rows::padded(pass.cx, std::vector<int32_t>{5}, 8);
    const ops::Attended got =
        ops::attention(pass.cx, padded_to(s.q, kHeads, filling), padded_to(s.k, kKvHeads, filling),
                       padded_to(s.v, kKvHeads, filling), rows, {});
    const Numbers z = to_host(got.z);
    EXPECT_EQ(part(z, 0, 5, kHeads * kWidth), attend_together({}, {s}, {}).front());
    EXPECT_EQ(part(z, 5, 3, kHeads * kWidth), Numbers(static_cast<size_t>(3 * kHeads * kWidth), 0.0));
    for (const double lse : part(to_host(got.lse), 5, 3, kHeads))
      EXPECT_EQ(lse, -std::numeric_limits<double>::infinity());
  }
}

// Every table shows the reference's pattern; rows in any choice and order have the bits they have among all others.
TEST(Attention, AnyRowsOfThePatternInEveryTable) {
  const std::vector<int32_t> lengths{70, 3, 40}, chosen{112, 69, 5, 6, 7, 71, 0, 33, 34};
  const Sequence s(61, 113);
  using Stage = AttentionPatternArgs::Stage;
  for (const Stage stage : {Stage::probs, Stage::biased}) {
    Numbers reference;
    for (const Kernels* table : kernels::all_tables()) {
      Pass pass({.kernels = table});
      const Tensor q = pass.input(s.q, {113, kHeads, kWidth}), k = pass.input(s.k, {113, kKvHeads, kWidth});
      const Tensor v = pass.input(s.v, {113, kKvHeads, kWidth});
      const Rows rows = Rows::ragged(pass.cx, lengths);
      const ops::AttentionOptions options{.softcap = 2.5, .causal = true, .window = 50};
      const Tensor lse = ops::attention(pass.cx, q, k, v, rows, options).lse;
      const Numbers all = to_host(ops::attention_pattern(pass.cx, q, k, lse, rows, options, {.stage = stage}));
      const Numbers some = to_host(
          ops::attention_pattern(pass.cx, q, k, lse, rows, options, {.stage = stage, .which = pass.cx.upload(chosen)}));
      const int64_t each = kHeads * 70;
      for (size_t i = 0; i < chosen.size(); ++i) {
        EXPECT_EQ(part(some, static_cast<int64_t>(i), 1, each), part(all, chosen[i], 1, each))
            << table->name << " row " << chosen[i];
      }
      if (reference.empty()) reference = all;
      ASSERT_EQ(all.size(), reference.size());
      for (size_t i = 0; i < all.size(); ++i) {
        if (std::isinf(reference[i])) {
          EXPECT_EQ(all[i], reference[i]) << table->name << " " << i;
        } else {
          EXPECT_NEAR(all[i], reference[i], 2e-6) << table->name << " " << i;
        }
      }
    }
  }
}

// z computed by hand from the pattern that is shown: softmax rows times v, in double.
TEST(Attention, ThePatternShownIsTheOneUsed) {
  Pass pass({.precision = Precision::f64()});
  const int64_t length = 71;
  const Sequence s(51, length);
  const Tensor q = pass.input(s.q, {length, kHeads, kWidth}), k = pass.input(s.k, {length, kKvHeads, kWidth});
  const Tensor v = pass.input(s.v, {length, kKvHeads, kWidth});
  const Rows rows = Rows::batch(pass.cx, 1, length);
  const ops::AttentionOptions options{.softcap = 2.5, .causal = true, .window = 50};
  const ops::Attended got = ops::attention(pass.cx, q, k, v, rows, options);
  const Numbers pattern = to_host(ops::attention_pattern(pass.cx, q, k, got.lse, rows, options));  // [T, H, S]

  Numbers by_hand;
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t h = 0; h < kHeads; ++h) {
      double mass = 0;
      Numbers z(kWidth, 0.0);
      for (int64_t j = 0; j < length; ++j) {
        const double a = pattern[static_cast<size_t>((i * kHeads + h) * length + j)];
        const bool seen = j <= i && i - j < 50;
        EXPECT_EQ(a > 0, seen) << "row " << i << " key " << j;
        mass += a;
        for (int64_t c = 0; c < kWidth; ++c) {
          z[static_cast<size_t>(c)] += a * s.v[static_cast<size_t>((j * kKvHeads + h / 2) * kWidth + c)];
        }
      }
      EXPECT_NEAR(mass, 1, 1e-12);
      append(by_hand, z);
    }
  }
  EXPECT_LE(nmse(to_host(got.z), by_hand), 1e-26);
}

TEST(Attention, BackwardLeavesEachHeadsImportance) {
  Pass pass({.precision = Precision::f64(), .tape = true});
  const int64_t length = 6;
  const Sequence s(61, length);
  const Tensor importance = pass.zeros({length, kHeads}, DType::f64);
  const Rows rows = Rows::batch(pass.cx, 1, length);
  const Tensor z =
      ops::attention(pass.cx, pass.input(s.q, {length, kHeads, kWidth}), pass.input(s.k, {length, kKvHeads, kWidth}),
                     pass.input(s.v, {length, kKvHeads, kWidth}), rows, {.causal = true, .importance = importance})
          .z;
  const Numbers dz = normals(62, z.count());
  const Tensor seed = pass.cx.constant(z.shape(), DType::f64);
  to_device(seed, dz);
  pass.tape.seed(pass.cx, z, seed);
  const Numbers values = to_host(z);
  pass.tape.backward(pass.cx);
  const Numbers got = to_host(importance);
  for (int64_t i = 0; i < length * kHeads; ++i) {
    double dot = 0;
    for (int64_t c = 0; c < kWidth; ++c)
      dot += values[static_cast<size_t>(i * kWidth + c)] * dz[static_cast<size_t>(i * kWidth + c)];
    EXPECT_NEAR(got[static_cast<size_t>(i)], dot, 1e-12);
  }
}

}  // namespace attention_test
}  // namespace qkv::test
