// Attention in bf16, where CPUs multiply pairs or tiles: widths and lengths that fill neither, any number of rows at a
// time, and NaN in masked positions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_pairs_test {

constexpr int64_t kHeads = 4, kKvHeads = 2;

struct Size {
  int64_t width, value_width, length;
};

struct Given {
  Numbers q, k, v, dz;  // [T, H, D], [T, G, D], [T, G, E], [T, H, E]
  Size size;

  explicit Given(const Size& s) : size(s) {
    const auto rounded = [](uint64_t seed, int64_t count) {
      Numbers numbers = normals(seed, count);
      for (double& x : numbers) x = round_to(DType::bf16, x);
      return numbers;
    };
    q = rounded(1, s.length * kHeads * s.width);
    k = rounded(2, s.length * kKvHeads * s.width);
    v = rounded(3, s.length * kKvHeads * s.value_width);
    dz = rounded(4, s.length * kHeads * s.value_width);
  }
};

Numbers part(const Numbers& all, int64_t first, int64_t count, int64_t each) {
  return {all.begin() + first * each, all.begin() + (first + count) * each};
}

struct Found {
  Numbers z, dq, dk, dv;
};

using How = Pass::Options;

// Rows [first, first + count) over the keys up to the last of them, as a cache has them.
Found attend(How how, const Given& g, int64_t first, int64_t count, const ops::AttentionOptions& options) {
  how.tape = true;
  Pass pass(how);
  const DType dtype = how.precision.compute;
  const int64_t keys = first + count;
  const auto input = [&](const Numbers& numbers, int64_t from, int64_t rows, int64_t heads, int64_t width) {
    return pass.input(part(numbers, from, rows, heads * width), {rows, heads, width}, dtype);
  };
  const Tensor q = input(g.q, first, count, kHeads, g.size.width), k = input(g.k, 0, keys, kKvHeads, g.size.width);
  const Tensor v = input(g.v, 0, keys, kKvHeads, g.size.value_width);
  const Rows rows = Rows::make(pass.cx,
                               {{.rows = static_cast<int32_t>(count),
                                 .keys = static_cast<int32_t>(keys),
                                 .position = static_cast<int32_t>(first)}},
                               count, keys);
  const Tensor z = ops::attention(pass.cx, q, k, v, rows, options).z;
  Found found{.z = to_host(z)};
  const Tensor dz = pass.cx.constant(z.shape(), z.dtype());
  to_device(dz, part(g.dz, first, count, kHeads * g.size.value_width));
  pass.tape.seed(pass.cx, z, dz);
  pass.tape.backward(pass.cx);
  found.dq = to_host(pass.tape.gradient(q));
  found.dk = to_host(pass.tape.gradient(k));
  found.dv = to_host(pass.tape.gradient(v));
  return found;
}

Found attend_all(const How& how, const Given& g, const ops::AttentionOptions& options) {
  return attend(how, g, 0, g.size.length, options);
}

How on(const Kernels* table, int threads = 1) {
  return {.kernels = table, .precision = Precision::bf16(), .threads = threads};
}

const std::vector<Size> kSizes{{64, 64, 83}, {72, 40, 83}, {34, 17, 70}, {6, 130, 37}, {5, 16, 66}, {128, 64, 33}};
const std::vector<ops::AttentionOptions> kMasks{{.causal = true}, {.causal = true, .window = 21}, {.window = 9}, {}};

// Six roundings to bf16 at most, as in the op table.
TEST(AttentionOfBf16, AgreesWithRefInDouble) {
  const double u = unit_roundoff(DType::bf16), limit = 6 * u * u;
  for (const Size& size : kSizes) {
    const Given given(size);
    for (const ops::AttentionOptions& options : kMasks) {
      const Found right = attend_all({.precision = Precision::f64()}, given, options);
      for (const Kernels* table : kernels::all_tables()) {
        const Found got = attend_all(on(table), given, options);
        const std::string where = std::string(table->name) + ", width " + std::to_string(size.width);
        EXPECT_LE(nmse(got.z, right.z), limit) << where;
        EXPECT_LE(nmse(got.dq, right.dq), limit) << where;
        EXPECT_LE(nmse(got.dk, right.dk), limit) << where;
        EXPECT_LE(nmse(got.dv, right.dv), limit) << where;
      }
    }
  }
}

// Three threads have too few key heads to find all gradients in one walk, one and two have not.
TEST(AttentionOfBf16, AnyNumberOfThreadsGivesTheSameBits) {
  for (const Size& size : kSizes) {
    const Given given(size);
    for (const ops::AttentionOptions& options : kMasks) {
      for (const Kernels* table : kernels::all_tables()) {
        const Found one = attend_all(on(table), given, options);
        for (const int threads : {2, 3}) {
          const Found more = attend_all(on(table, threads), given, options);
          EXPECT_EQ(one.z, more.z) << table->name;
          EXPECT_EQ(one.dq, more.dq) << table->name;
          EXPECT_EQ(one.dk, more.dk) << table->name;
          EXPECT_EQ(one.dv, more.dv) << table->name;
        }
      }
    }
  }
}

TEST(AttentionOfBf16, RowsInChunksOfAnySizeGiveTheSameBits) {
  const Given given({72, 40, 153});  // chunks of 1 to 17 rows
  for (const Kernels* table : kernels::all_tables()) {
    for (const int64_t window : {0, 50}) {
      const ops::AttentionOptions options{.causal = true, .window = window};
      const Found whole = attend_all(on(table), given, options);
      for (int64_t first = 0, count = 1; first < given.size.length; first += count++) {
        const Found chunk = attend(on(table), given, first, count, options);
        EXPECT_EQ(chunk.z, part(whole.z, first, count, kHeads * given.size.value_width)) << table->name << count;
        EXPECT_EQ(chunk.dq, part(whole.dq, first, count, kHeads * given.size.width)) << table->name << count;
      }
    }
  }
}

// A width that only general forms take, and one that GPUs have fast forms for.
const std::vector<Size> kBadSizes{{72, 40, 83}, {64, 64, 83}};

// NaN in a key and its value, in the middle of a block of rows and of keys: rows that do not see them keep their bits.
// So do the heads that read the key head right before.
TEST(AttentionOfBf16, HiddenKeysAndValuesMayBeNoNumbers) {
  constexpr int64_t kBad = 37, kBadHead = 1, kWindow = 20;
  const auto expect_seen_by_those_who_see_it = [](const Kernels* table, const Size& size, double no_number) {
    const Given clean(size);
    Given given = clean;
    given.k[static_cast<size_t>((kBad * kKvHeads + kBadHead) * size.width + 3)] = no_number;
    given.v[static_cast<size_t>((kBad * kKvHeads + kBadHead) * size.value_width + 7)] = no_number;
    const ops::AttentionOptions options{.causal = true, .window = kWindow};
    const Found right = attend_all(on(table), clean, options), got = attend_all(on(table), given, options);
    for (int64_t at = 0; at < size.length * kHeads; ++at) {
      const int64_t row = at / kHeads, head = at % kHeads * kKvHeads / kHeads;
      const bool sees = head == kBadHead && row >= kBad && row < kBad + kWindow;
      const auto z_of = [&](const Found& f) { return part(f.z, at, 1, size.value_width); };
      const auto dq_of = [&](const Found& f) { return part(f.dq, at, 1, size.width); };
      EXPECT_EQ(z_of(got) == z_of(right), !sees) << table->name << " row " << row;
      EXPECT_EQ(dq_of(got) == dq_of(right), !sees) << table->name << " row " << row;
    }
    const Found alone = attend(on(table), given, kBad - 1, 1, options);
    EXPECT_EQ(alone.z, part(right.z, kBad - 1, 1, kHeads * size.value_width)) << table->name;
  };
  for (const double no_number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const Kernels* table : kernels::all_tables()) {
      for (const Size& size : kBadSizes) expect_seen_by_those_who_see_it(table, size, no_number);
    }
  }
}

// The same for a row: keys it does not see are not affected by it.
TEST(AttentionOfBf16, RowsThatAreNoNumbersReachNoKeyTheyDoNotSee) {
  constexpr int64_t kBad = 37, kBadHead = 2, kWindow = 20;
  const auto expect_told_only_what_it_sees = [](const Kernels* table, const Size& size) {
    const Given clean(size);
    Given given = clean;
    given.q[static_cast<size_t>((kBad * kHeads + kBadHead) * size.width)] = std::nan("");
    given.dz[static_cast<size_t>((kBad * kHeads + kBadHead) * size.value_width)] = std::nan("");
    const ops::AttentionOptions options{.causal = true, .window = kWindow};
    const Found right = attend_all(on(table), clean, options), got = attend_all(on(table), given, options);
    for (int64_t at = 0; at < size.length * kKvHeads; ++at) {
      const int64_t key = at / kKvHeads, head = at % kKvHeads;
      const bool told = head == kBadHead * kKvHeads / kHeads && key <= kBad && key > kBad - kWindow;
      const auto dk_of = [&](const Found& f) { return part(f.dk, at, 1, size.width); };
      const auto dv_of = [&](const Found& f) { return part(f.dv, at, 1, size.value_width); };
      EXPECT_EQ(dk_of(got) == dk_of(right), !told) << table->name << " key " << key;
      EXPECT_EQ(dv_of(got) == dv_of(right), !told) << table->name << " key " << key;
    }
  };
  const std::set<std::string_view> multiply_by_zero{"plain", "avx2", "avx512"};
  for (const Kernels* table : kernels::all_tables()) {
    if (multiply_by_zero.contains(table->name)) continue;
    for (const Size& size : kBadSizes) expect_told_only_what_it_sees(table, size);
  }
}

}  // namespace attention_pairs_test
}  // namespace qkv::test
