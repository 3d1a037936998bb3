// Attention of packed sequences in bf16, and its gradients: a sequence has the same ones alone and beside others, whatever
// those are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_packs_test {

struct Shapes {
  int64_t heads, kv_heads, width, value_width;
};
struct Lengths {
  int32_t rows, keys;
};
struct Sequence {
  Numbers q, k, v, dz;  // [T, H, D], [S, G, D], [S, G, E], [T, H, E]
  Lengths lengths;

  Sequence(uint64_t seed, const Shapes& s, const Lengths& l) : lengths(l) {
    const auto rounded = [&](uint64_t more, int64_t count) {
      Numbers numbers = normals(seed + more, count);
      for (double& x : numbers) x = round_to(DType::bf16, x);
      return numbers;
    };
    q = rounded(100, l.rows * s.heads * s.width);
    k = rounded(200, l.keys * s.kv_heads * s.width);
    v = rounded(300, l.keys * s.kv_heads * s.value_width);
    dz = rounded(400, l.rows * s.heads * s.value_width);
  }
};

struct Found {
  Numbers z, dq, dk, dv;
  bool operator==(const Found& other) const {
    const auto same = [](const Numbers& a, const Numbers& b) {
      return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
    };
    return same(z, other.z) && same(dq, other.dq) && same(dk, other.dk) && same(dv, other.dv);
  }
};

using How = Pass::Options;

// Of each sequence, all in one pass.
std::vector<Found> attend(How how, const Shapes& s, const std::vector<Sequence>& sequences,
                          const ops::AttentionOptions& options) {
  how.tape = true;
  Pass pass(how);
  Numbers q, k, v, dz;
  std::vector<int32_t> rows, keys;
  const auto append = [](Numbers& to, const Numbers& more) { to.insert(to.end(), more.begin(), more.end()); };
  for (const Sequence& one : sequences) {
    append(q, one.q);
    append(k, one.k);
    append(v, one.v);
    append(dz, one.dz);
    rows.push_back(one.lengths.rows);
    keys.push_back(one.lengths.keys);
  }
  const Rows asking = Rows::ragged(pass.cx, rows), asked = Rows::ragged(pass.cx, keys);
  const Rows both = Rows::cross(pass.cx, asking, asked);
  const DType dtype = how.precision.compute;
  const Tensor q_in = pass.input(q, {both.rows, s.heads, s.width}, dtype),
               k_in = pass.input(k, {both.keys, s.kv_heads, s.width}, dtype),
               v_in = pass.input(v, {both.keys, s.kv_heads, s.value_width}, dtype);
  const Tensor z = ops::attention(pass.cx, q_in, k_in, v_in, both, options).z;
  const Tensor seed = pass.cx.constant(z.shape(), z.dtype());
  to_device(seed, dz);
  pass.tape.seed(pass.cx, z, seed);
  pass.tape.backward(pass.cx);
  const Numbers all_z = to_host(z), dq = to_host(pass.tape.gradient(q_in)), dk = to_host(pass.tape.gradient(k_in)),
                dv = to_host(pass.tape.gradient(v_in));
  std::vector<Found> each;
  int64_t row = 0, key = 0;
  for (const Sequence& one : sequences) {
    const auto part = [](const Numbers& all, int64_t first, int64_t count, int64_t width) {
      return Numbers(all.begin() + first * width, all.begin() + (first + count) * width);
    };
    each.push_back({part(all_z, row, one.lengths.rows, s.heads * s.value_width),
                    part(dq, row, one.lengths.rows, s.heads * s.width),
                    part(dk, key, one.lengths.keys, s.kv_heads * s.width),
                    part(dv, key, one.lengths.keys, s.kv_heads * s.value_width)});
    row += one.lengths.rows;
    key += one.lengths.keys;
  }
  return each;
}

std::vector<Sequence> pack(const Shapes& s, const std::vector<Lengths>& lengths) {
  std::vector<Sequence> sequences;
  for (const Lengths& l : lengths) sequences.emplace_back(1000 * sequences.size(), s, l);
  return sequences;
}

How on(const Kernels* table) {
  return {.kernels = table, .precision = Precision::bf16(), .threads = 2};
}

const std::vector<Shapes> kShapes{{1, 1, 64, 64}, {2, 1, 128, 128}, {1, 1, 40, 32}};
const std::vector<ops::AttentionOptions> kMasks{{.causal = true}, {.window = 21}};
const std::vector<Lengths> kSelf{{70, 70}, {1, 1}, {64, 64}, {0, 0}, {33, 33}},
    kCross{{40, 33}, {5, 70}, {64, 64}, {20, 0}, {33, 66}};
// The last is longer than what the short forms take, so the others beside it are not in those.
const std::vector<Lengths> kLong{{128, 128}, {64, 64}, {90, 128}, {64, 128}, {128, 70}, {17, 5}, {129, 40}};

TEST(AttentionOfPacks, AloneOrPackedGivesTheSameBits) {
  for (const Shapes& shapes : kShapes) {
    for (const auto& lengths : {kSelf, kCross}) {
      const std::vector<Sequence> sequences = pack(shapes, lengths);
      for (const ops::AttentionOptions& options : kMasks) {
        for (const Kernels* table : kernels::all_tables()) {
          const auto together = attend(on(table), shapes, sequences, options);
          for (size_t i = 0; i < sequences.size(); ++i) {
            if (lengths[i].rows == 0 || lengths[i].keys == 0) continue;
            const auto alone = attend(on(table), shapes, {sequences[i]}, options);
            EXPECT_TRUE(alone.front() == together[i]) << table->name << " width " << shapes.width << " sequence " << i;
          }
        }
      }
    }
  }
}

void expect_same_beside_a_long_one(const Shapes& shapes, const std::vector<Sequence>& sequences,
                                   const std::vector<ops::AttentionOptions>& masks) {
  for (const ops::AttentionOptions& options : masks) {
    for (const Kernels* table : kernels::all_tables()) {
      const auto beside = attend(on(table), shapes, sequences, options),
                 without = attend(on(table), shapes, {sequences.begin(), sequences.end() - 1}, options);
      for (size_t i = 0; i + 1 < sequences.size(); ++i) {
        EXPECT_TRUE(beside[i] == without[i]) << table->name << " heads " << shapes.heads << " sequence " << i;
      }
    }
  }
}

TEST(AttentionOfPacks, ShortOnesBesideALongOneHaveTheSameBits) {
  const Shapes one{1, 1, 64, 64}, three{3, 1, 64, 48};
  expect_same_beside_a_long_one(one, pack(one, kLong), {{}, {.causal = true, .window = 40}, {.chunk = 48}});
  expect_same_beside_a_long_one(three, pack(three, kLong), {{.causal = true}});
}

// Also where a key or value, a row of q or one of dz is no number, and some see it and others do not.
TEST(AttentionOfPacks, SoDoThoseWithNumbersThatAreNone) {
  const Shapes shapes{2, 1, 64, 64};
  for (Numbers Sequence::*const of : {&Sequence::q, &Sequence::k, &Sequence::v, &Sequence::dz}) {
    std::vector<Sequence> sequences = pack(shapes, {{90, 128}, {128, 128}, {129, 5}});
    for (Sequence& one : sequences) {
      Numbers& numbers = one.*of;
      numbers[numbers.size() / 3] = std::nan("");
      numbers[numbers.size() / 5 * 4] = -std::numeric_limits<double>::infinity();
    }
    expect_same_beside_a_long_one(shapes, sequences, {{}, {.causal = true}});
  }
}

// A neighbour of NaN: it shares blocks of rows and keys with the sequences around it, and nothing else.
TEST(AttentionOfPacks, ANeighbourThatIsNoNumberDoesNotLeak) {
  for (const Shapes& shapes : kShapes) {
    for (const auto& lengths : {kSelf, kCross}) {
      const std::vector<Sequence> sequences = pack(shapes, lengths);
      std::vector<Sequence> broken = sequences;
      Sequence& one = broken[2];
      for (Numbers* numbers : {&one.q, &one.k, &one.v, &one.dz}) numbers->assign(numbers->size(), std::nan(""));
      for (const ops::AttentionOptions& options : kMasks) {
        for (const Kernels* table : kernels::all_tables()) {
          const auto right = attend(on(table), shapes, sequences, options),
                     got = attend(on(table), shapes, broken, options);
          for (size_t i = 0; i < sequences.size(); ++i) {
            if (i == 2) continue;
            EXPECT_TRUE(got[i] == right[i]) << table->name << " width " << shapes.width << " sequence " << i;
          }
          EXPECT_TRUE(std::isnan(got[2].dq.front()) && std::isnan(got[2].dv.back())) << table->name;
        }
      }
    }
  }
}

}  // namespace attention_packs_test
}  // namespace qkv::test
