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

// Multiplies ds by the derivative of the soft cap, 1 - tanh^2; raw: products q . k.
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

// Probabilities and score gradients of a block of rows and a block of keys, from the products q . k and dz . v.
class ScoreGradients {
 public:
  float probs[kBlocksOfGroup * kTile];  // in: q . k; out: p * dropout factor (compute_rows only)
  float ds[kBlocksOfGroup * kTile];     // in: dz . v; out: d loss / d score, without the scale

  // Stored by rows, from row `at` on; zeros where a row sees nothing.
  void compute_rows(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, int64_t at = 0) {
    const Tile p = Tile::rows(probs + at * kKeyBlock), d = Tile::rows(ds + at * kKeyBlock);
    begin(a, block, key, p, d);
    for (int64_t r = 0; r < block.count(); ++r) {
      GradientStep step{.scores = &p(r, 0), .dp = &d(r, 0), .probs = &p(r, 0), .ds = &d(r, 0)};
      step.scale = block.apply_score_rules(r, key, p);
      block.mask_hidden(r, key, &p(r, 0), ref::QueryRow<float>::kHidden);
      step.lse = lse_of(a, block.row(r));
      step.delta = delta_of(a, block.row(r));
      block.isa().gradient_step(step);
      block.mask_hidden(r, key, &p(r, 0), 0);
      block.mask_hidden(r, key, &d(r, 0), 0);
      if (a.in.dropout.p > 0) block.apply_dropout(r, key, p);
    }
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::rows(raw_), d);
  }

  // The score gradients only, stored by columns.
  void compute_columns(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key) {
    const Tile p = Tile::columns(probs), d = Tile::columns(ds);
    begin(a, block, key, p, d);
    const Keys keys = block.seen(key);
    GradientColumns step{.scores = probs, .dp = ds, .ds = ds, .from = keys.begin - key, .to = keys.end - key};
    block.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block.count(); ++r) {
      step.scale = block.apply_score_rules(r, key, p);
      step.lse[r] = lse_of(a, block.row(r));
      step.delta[r] = delta_of(a, block.row(r));
    }
    block.isa().gradient_columns(step);
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::columns(raw_), d);
  }

 private:
  void begin(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, const Tile& p, const Tile& d) {
    if (a.in.softcap > 0) std::copy(p.data, p.data + kTile, raw_);
    for (int64_t r = 0; r < block.count() && a.in.dropout.p > 0; ++r) block.apply_dropout(r, key, d);
  }

  float raw_[kTile];
};

}  // namespace qkv::kernels::cpu
