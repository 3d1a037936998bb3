// What attention does to sixteen rows at once: a row is a lane, so that nothing is ever added across lanes. Bit for bit
// what the forms for one row give: where those put element k into lane k % 16 and add the lanes as a tree, here sixteen
// sums are added as the same tree.
#pragma once

#include "kernels/cpu/forms/attention.h"

namespace qkv::kernels::cpu {
namespace {

static_assert(kColumns == kLanes);

#if defined(__AVX512F__)
constexpr int kColumnTile = 4;  // four sums and four levels of the tree in twenty registers
#else
constexpr int kColumnTile = 1;
#endif

template <int Rows>
struct ColumnSums {
  Lanes of[unsigned{Rows}];
};

// The part of the tree over the lanes First, First + Step, ...
template <int Rows, int First, int Step>
QKV_INLINE ColumnSums<Rows> column_sums(const ColumnDots& d, const float* rows) {
  ColumnSums<Rows> sums;
  if constexpr (Step == kLanes) {
    for (int r = 0; r < Rows; ++r) sums.of[r] = splat(0);
    for (int64_t k = First; k < d.inner; k += kLanes) {
      const Lanes column = load(d.columns + k * kColumns);
      for (int r = 0; r < Rows; ++r) sums.of[r] = multiply_add(splat(rows[r * d.row_stride + k]), column, sums.of[r]);
    }
  } else {
    sums = column_sums<Rows, First, 2 * Step>(d, rows);
    const ColumnSums<Rows> more = column_sums<Rows, First + Step, 2 * Step>(d, rows);
    for (int r = 0; r < Rows; ++r) sums.of[r] = sums.of[r] + more.of[r];
  }
  return sums;
}

template <int Rows>
void column_tile(const ColumnDots& d, int64_t first) {
  const ColumnSums<Rows> sums = column_sums<Rows, 0, 1>(d, d.rows + first * d.row_stride);
  for (int r = 0; r < Rows; ++r) store(d.y + (first + r) * d.y_stride, sums.of[r]);
}

void column_dots(const ColumnDots& d) noexcept {
  int64_t i = 0;
  for (; i + kColumnTile <= d.count; i += kColumnTile) column_tile<kColumnTile>(d, i);
  for (; i < d.count; ++i) column_tile<1>(d, i);
}

void to_columns(float* y, const float* x, int64_t stride, int64_t rows, int64_t cols) noexcept {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < kColumns; ++r) y[c * kColumns + r] = r < rows ? x[r * stride + c] : 0;
  }
}

// Sums over the keys of a block: key j goes to sum j % 16, then the tree.
template <class Term>
QKV_INLINE Lanes over_keys(Term&& add) {
  Lanes sums[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    sums[l] = splat(0);
    for (int64_t j = l; j < kKeyBlock; j += kLanes) sums[l] = add(sums[l], j);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) sums[l] = sums[l] + sums[l + half];
  }
  return sums[0];
}

// x where a row sees key j, else `hidden`.
QKV_INLINE Lanes where_seen(const Lanes& x, int64_t j, const Lanes& begin, const Lanes& end, const Lanes& hidden) {
  const Lanes key = splat(static_cast<float>(j));
  return if_less(key, begin, hidden, if_less(key, end, x, hidden));
}

void softmax_columns(SoftmaxColumns& s) noexcept {
  constexpr float kNothing = -__builtin_inff();
  const Lanes hidden = splat(kNothing), scale = splat(s.scale), begin = load(s.begin), end = load(s.end);
  const Lanes before = load(s.highest);
  Lanes top = before;
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    Lanes x = hidden;
    if (j >= s.from && j < s.to) {
      x = load(s.scores + j * kColumns) * scale;
      if (!s.alike) x = where_seen(x, j, begin, end, hidden);
    }
    store(s.scores + j * kColumns, x);
    top = lanes_max(top, x);
  }
  // A row that has seen nothing yet: e^(-inf - 0) = 0.
  const Lanes shift = each(top, [](Register x) { return x == splat_register(kNothing) ? Register{} : -x; });
  const Lanes fall = exp(before + shift), one = splat(1);
  Lanes rescale;
  for (int p = 0; p < kParts; ++p) rescale.part[p] = before.part[p] == top.part[p] ? one.part[p] : fall.part[p];
  for (int64_t j = 0; j < kKeyBlock; ++j) store(s.probs + j * kColumns, exp(load(s.scores + j * kColumns) + shift));
  const Lanes mass = over_keys([&](const Lanes& sum, int64_t j) { return sum + load(s.probs + j * kColumns); });
  store(s.rescale, rescale);
  store(s.highest, top);
  store(s.mass, mass);
  store(s.total, load(s.total) * rescale + mass);
}

void stats_columns(StatsColumns& s) noexcept {
  constexpr float kNothing = -__builtin_inff();
  const Lanes from = load(s.from);
  const auto prob = [&](int64_t j) { return load(s.probs + j * kColumns); };
  Lanes top = splat(kNothing), where = splat(0);
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    const Lanes x = load(s.scores + j * kColumns);
    where = if_less(top, x, splat(static_cast<float>(j)), where);
    top = lanes_max(top, x);
  }
  store(s.mass_x, over_keys([&](const Lanes& sum, int64_t j) {
          const Lanes seen = each(load(s.scores + j * kColumns), [](Register x) {
            return x == splat_register(kNothing) ? Register{} : x;  // 0 * -inf would be NaN
          });
          return multiply_add(prob(j), seen, sum);
        }));
  store(s.distance, over_keys([&](const Lanes& sum, int64_t j) {
          return multiply_add(prob(j), from - splat(static_cast<float>(j)), sum);
        }));
  store(s.highest, top);
  store(s.where, where);
}

void gradient_columns(const GradientColumns& g) noexcept {
  const Lanes scale = splat(g.scale), lse = load(g.lse), delta = load(g.delta), none = splat(0);
  const Lanes begin = load(g.begin), end = load(g.end);
  for (int64_t j = g.from; j < g.to; ++j) {
    const Lanes probs = exp(load(g.scores + j * kColumns) * scale - lse);
    const Lanes ds = probs * (load(g.dp + j * kColumns) - delta);
    store(g.ds + j * kColumns, where_seen(ds, j, begin, end, none));
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu
