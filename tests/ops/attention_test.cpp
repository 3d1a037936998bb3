// What attention promises beyond its formula: the same bits alone, in a batch, chunked, cached in pages; no leak across
// documents, padding or time; the pattern it shows is the one it used.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 8;

struct Sequence {
  Numbers q, k, v;  // [T, H, D], [T, G, D]
  int64_t length = 0;

  Sequence(uint64_t seed, int64_t tokens)
      : q(normals(seed, tokens * kHeads * kWidth)),
        k(normals(seed + 1000, tokens * kKvHeads * kWidth)),
        v(normals(seed + 2000, tokens * kKvHeads * kWidth)),
        length(tokens) {}
};

Numbers part(const Numbers& all, int64_t first, int64_t count, int64_t each) {
  return {all.begin() + first * each, all.begin() + (first + count) * each};
}

void append(Numbers& to, const Numbers& more) {
  to.insert(to.end(), more.begin(), more.end());
}

using How = Pass::Options;

// All sequences in one pass, one after the other.
std::vector<Numbers> attend_together(const How& setup, const std::vector<Sequence>& sequences,
                                     const ops::AttentionOptions& options) {
  Pass pass(setup);
  Numbers q, k, v;
  std::vector<int32_t> lengths;
  for (const Sequence& s : sequences) {
    append(q, s.q);
    append(k, s.k);
    append(v, s.v);
    lengths.push_back(static_cast<int32_t>(s.length));
  }
  const Rows rows = Rows::ragged(pass.cx, lengths);
  const DType dtype = setup.precision.compute;
  const auto z = to_host(ops::attention(pass.cx, pass.input(q, {rows.rows, kHeads, kWidth}, dtype),
                                        pass.input(k, {rows.rows, kKvHeads, kWidth}, dtype),
                                        pass.input(v, {rows.rows, kKvHeads, kWidth}, dtype), rows, options)
                             .z);
  std::vector<Numbers> each;
  int64_t at = 0;
  for (const Sequence& s : sequences) {
    each.push_back(part(z, at, s.length, kHeads * kWidth));
    at += s.length;
  }
  return each;
}

// One sequence in chunks, keys and values through pages that lie in any order.
Numbers attend_cached(const How& setup, const Sequence& s, const std::vector<int64_t>& chunks, int64_t page,
                      ops::AttentionOptions options) {
  Pass pass(setup);
  const DType dtype = setup.precision.compute;
  const int64_t pages = (s.length + page - 1) / page;
  const Tensor keys = pass.zeros({pages, page, kKvHeads, kWidth}, dtype);
  const Tensor values = pass.zeros({pages, page, kKvHeads, kWidth}, dtype);
  std::vector<int32_t> table;
  for (int64_t p = 0; p < pages; ++p) table.push_back(static_cast<int32_t>(pages - 1 - p));

  Numbers z;
  int64_t done = 0;
  for (const int64_t count : chunks) {
    std::vector<int32_t> slots;
    for (int64_t j = done; j < done + count; ++j) {
      slots.push_back(static_cast<int32_t>(table[static_cast<size_t>(j / page)] * page + j % page));
    }
    const auto write = [&](const Tensor& to, const Numbers& from) {
      const Tensor x = pass.input(part(from, done, count, kKvHeads * kWidth), {count, kKvHeads, kWidth}, dtype);
      ops::scatter_rows(pass.cx, to.view({pages * page, kKvHeads, kWidth}), x, pass.cx.upload(slots));
    };
    write(keys, s.k);
    write(values, s.v);
    const Rows rows = Rows::make(pass.cx,
                                 {{.rows = static_cast<int32_t>(count),
                                   .keys = static_cast<int32_t>(done + count),
                                   .position = static_cast<int32_t>(done)}},
                                 count, Rows::kPaged);
    options.table = pass.cx.upload(table).view({1, pages});
    const Tensor q = pass.input(part(s.q, done, count, kHeads * kWidth), {count, kHeads, kWidth}, dtype);
    append(z, to_host(ops::attention(pass.cx, q, keys, values, rows, options).z));
    done += count;
  }
  return z;
}

std::vector<How> setups() {
  std::vector<How> all;
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      for (const int threads : {1, 2}) all.push_back({.kernels = table, .precision = precision, .threads = threads});
    }
  }
  return all;
}

TEST(Attention, AloneOrInABatchGivesTheSameBits) {
  const std::vector<Sequence> sequences{{1, 70}, {2, 1}, {3, 33}};
  for (const How& setup : setups()) {
    const auto together = attend_together(setup, sequences, {.causal = true});
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(attend_together(setup, {sequences[i]}, {.causal = true}).front(), together[i]);
    }
  }
}

TEST(Attention, CachedInPagesAndChunkedGivesTheSameBitsAsWhole) {
  const Sequence sequence(5, 150);  // more than two key blocks
  for (const How& setup : setups()) {
    for (const int64_t window : {0, 40}) {
      const ops::AttentionOptions options{.causal = true, .window = window};
      const Numbers whole = attend_together(setup, {sequence}, options).front();
      EXPECT_EQ(attend_cached(setup, sequence, {150}, 16, options), whole);
      EXPECT_EQ(attend_cached(setup, sequence, {64, 1, 1, 50, 34}, 7, options), whole);
      EXPECT_EQ(attend_cached(setup, sequence, std::vector<int64_t>(150, 1), 32, options), whole);
    }
  }
}

RC_GTEST_PROP(AttentionProperty, AnyChunkingAndPageSizeGivesTheSameBits, ()) {
  const auto length = *rc::gen::inRange<int64_t>(1, 90);
  std::vector<int64_t> chunks;
  for (int64_t left = length; left > 0;) {
    chunks.push_back(*rc::gen::inRange<int64_t>(1, left + 1));
    left -= chunks.back();
  }
  const auto page = *rc::gen::inRange<int64_t>(1, 70);
  const Sequence sequence(static_cast<uint64_t>(length), length);
  const How setup{.kernels = &kernels::cpu::table(), .threads = 2};
  RC_ASSERT(attend_cached(setup, sequence, chunks, page, {.causal = true}) ==
            attend_together(setup, {sequence}, {.causal = true}).front());
}

TEST(Attention, PagesAWindowHasLeftAreNeverRead) {
  const How setup;
  Pass pass(setup);
  const int64_t page = 4, pages = 5, length = 20, window = 6;
  const Sequence s(9, length);
  const Tensor keys = pass.input(s.k, {pages, page, kKvHeads, kWidth});
  const Tensor values = pass.input(s.v, {pages, page, kKvHeads, kWidth});
  const Rows rows = Rows::make(pass.cx, {{.rows = 1, .keys = 20, .position = 19}}, 1, Rows::kPaged);
  const Tensor q = pass.input(part(s.q, 19, 1, kHeads * kWidth), {1, kHeads, kWidth});
  const auto z = [&](std::vector<int32_t> table) {
    return to_host(ops::attention(pass.cx, q, keys, values, rows,
                                  {.causal = true, .window = window, .table = pass.cx.upload(table).view({1, pages})})
                       .z);
  };
  EXPECT_EQ(z({-1, -1, -1, 3, 4}), z({0, 1, 2, 3, 4}));  // keys 14 .. 19 live in pages 3 and 4
}

// What stands right never changes what stands left, exactly: d z_i / d x_j == 0 for j > i.
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
  for (const double filling : {0.0, 1e30, std::nan("")}) {  // whatever lies in the padding
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

}  // namespace
}  // namespace qkv::test
