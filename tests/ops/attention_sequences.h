// Sequences for tests of attention: questions, keys and values of a few heads, and all of them in one pass.
#pragma once

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_test {

inline constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 8;

struct Sequence {
  Numbers q, k, v;  // [T, H, D], [T, G, D]
  int64_t length = 0;

  Sequence(uint64_t seed, int64_t tokens)
      : q(normals(seed, tokens * kHeads * kWidth)),
        k(normals(seed + 1000, tokens * kKvHeads * kWidth)),
        v(normals(seed + 2000, tokens * kKvHeads * kWidth)),
        length(tokens) {}
};

inline Numbers part(const Numbers& all, int64_t first, int64_t count, int64_t each) {
  return {all.begin() + first * each, all.begin() + (first + count) * each};
}

inline void append(Numbers& to, const Numbers& more) {
  to.insert(to.end(), more.begin(), more.end());
}

using How = Pass::Options;

// All sequences in one pass, one after the other.
inline std::vector<Numbers> attend_together(const How& setup, const std::vector<Sequence>& sequences,
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

inline std::vector<How> setups() {
  std::vector<How> all;
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      for (const int threads : {1, 2}) all.push_back({.kernels = table, .precision = precision, .threads = threads});
    }
  }
  return all;
}

}  // namespace attention_test
}  // namespace qkv::test
