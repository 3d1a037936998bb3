// Gradients of the scores of a block of rows against a block of keys.
#pragma once

#include <cmath>

#include "kernels/cpu/attention.h"

namespace qkv::kernels::cpu {

constexpr int64_t kTile = RowBlock::kMost * kKeyBlock, kBlocksOfGroup = 2;

inline float lse_of(const AttentionBackwardArgs& a, const ref::QueryRow<float>& row) {
  const float lse = ref::In<float>(a.lse, {row.row()})[row.head()];
  return lse == ref::QueryRow<float>::kHidden ? 0 : lse;
}
inline float delta_of(const AttentionBackwardArgs& a, const ref::QueryRow<float>& row) {
  return ref::In<float>(a.delta, {row.row()})[row.head()];
}

// A cap lets 1 - tanh^2 of a score's gradient through; raw: products q . k.
inline void through_cap(const AttentionInput& in, const RowBlock& block, int64_t key, const Tile& raw, const Tile& ds) {
  const float cap = static_cast<float>(in.softcap), scale = static_cast<float>(in.scale);
  for (int64_t r = 0; r < block.count(); ++r) {
    const Keys seen = block.seen(r, key);
    for (int64_t j = seen.begin - key; j < seen.end - key; ++j) {
      const float t = std::tanh(raw(r, j) * scale / cap);
      ds(r, j) *= 1 - t * t;
    }
  }
}

// What a block of rows and a block of keys give each other, from the products q . k and dz . v.
class PairGradients {
 public:
  float probs[kBlocksOfGroup * kTile];  // q . k on the way in, p keep on the way out (rows only)
  float ds[kBlocksOfGroup * kTile];     // dz . v on the way in, d loss / d score without the scale on the way out

  // Rows one after the other, the first of them is row `at`; zeros where a row sees nothing.
  void find_rows(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, int64_t at = 0) {
    const Tile p = Tile::rows(probs + at * kKeyBlock), d = Tile::rows(ds + at * kKeyBlock);
    begin(a, block, key, p, d);
    for (int64_t r = 0; r < block.count(); ++r) {
      GradientStep step{.scores = &p(r, 0), .dp = &d(r, 0), .probs = &p(r, 0), .ds = &d(r, 0)};
      step.scale = block.finish_scores(r, key, p);
      block.cover(r, key, &p(r, 0), ref::QueryRow<float>::kHidden);
      step.lse = lse_of(a, block.row(r));
      step.delta = delta_of(a, block.row(r));
      block.isa().gradient_step(step);
      block.cover(r, key, &p(r, 0), 0);
      block.cover(r, key, &d(r, 0), 0);
      if (a.in.dropout.p > 0) block.drop(r, key, p);
    }
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::rows(raw_), d);
  }

  // The gradients of the scores alone, rows as columns.
  void find_columns(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key) {
    const Tile p = Tile::columns(probs), d = Tile::columns(ds);
    begin(a, block, key, p, d);
    const Keys keys = block.seen(key);
    GradientColumns step{.scores = probs, .dp = ds, .ds = ds, .from = keys.begin - key, .to = keys.end - key};
    block.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block.count(); ++r) {
      step.scale = block.finish_scores(r, key, p);
      step.lse[r] = lse_of(a, block.row(r));
      step.delta[r] = delta_of(a, block.row(r));
    }
    block.isa().gradient_columns(step);
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::columns(raw_), d);
  }

 private:
  void begin(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, const Tile& p, const Tile& d) {
    if (a.in.softcap > 0) std::copy(p.data, p.data + kTile, raw_);
    for (int64_t r = 0; r < block.count() && a.in.dropout.p > 0; ++r) block.drop(r, key, d);
  }

  float raw_[kTile];
};

}  // namespace qkv::kernels::cpu
