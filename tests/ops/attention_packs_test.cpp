// Gradients of packed sequences in bf16: a sequence has the same ones alone and beside others, whatever those are.
#include <gtest/gtest.h>

#include <cmath>

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

struct Gradients {
  Numbers dq, dk, dv;
  bool operator==(const Gradients&) const = default;
};

using How = Pass::Options;

// Of each sequence, all in one pass.
std::vector<Gradients> backward(How how, const Shapes& s, const std::vector<Sequence>& sequences,
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
  const Numbers dq = to_host(pass.tape.gradient(q_in)), dk = to_host(pass.tape.gradient(k_in)),
                dv = to_host(pass.tape.gradient(v_in));
  std::vector<Gradients> each;
  int64_t row = 0, key = 0;
  for (const Sequence& one : sequences) {
    const auto part = [](const Numbers& all, int64_t first, int64_t count, int64_t width) {
      return Numbers(all.begin() + first * width, all.begin() + (first + count) * width);
    };
    each.push_back({part(dq, row, one.lengths.rows, s.heads * s.width),
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

TEST(AttentionOfPacks, AloneOrPackedGivesTheSameGradients) {
  for (const Shapes& shapes : kShapes) {
    for (const auto& lengths : {kSelf, kCross}) {
      const std::vector<Sequence> sequences = pack(shapes, lengths);
      for (const ops::AttentionOptions& options : kMasks) {
        for (const Kernels* table : kernels::all_tables()) {
          const auto together = backward(on(table), shapes, sequences, options);
          for (size_t i = 0; i < sequences.size(); ++i) {
            if (lengths[i].rows == 0 || lengths[i].keys == 0) continue;
            const auto alone = backward(on(table), shapes, {sequences[i]}, options);
            EXPECT_TRUE(alone.front() == together[i]) << table->name << " width " << shapes.width << " sequence " << i;
          }
        }
      }
    }
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
          const auto right = backward(on(table), shapes, sequences, options),
                     got = backward(on(table), shapes, broken, options);
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
