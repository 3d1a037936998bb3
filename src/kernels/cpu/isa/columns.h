// Attention on sixteen rows at once: a row is a lane, so nothing is added across lanes. Bit for bit the same as the
// kernels for one row: where those put element k into lane k % 16 and add the lanes as a tree, here sixteen sums are
// added as the same tree.
#pragma once

#include "kernels/cpu/isa/attention.h"
#include "kernels/cpu/isa/matmul.h"

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

// What is multiplied at a time: one f32, or a pair of bf16 where that has its own order.
struct Singles {
  typedef float Element;
  static constexpr int64_t kWidth = 1;
  QKV_INLINE Lanes multiply(const float* column, const float* row, const Lanes& sum) {
    return multiply_add(splat(*row), load(column), sum);
  }
};
#if defined(__AVX512BF16__)
struct PairsOfBf16 {
  typedef uint16_t Element;
  static constexpr int64_t kWidth = 2;
  QKV_INLINE Lanes multiply(const uint16_t* column, const uint16_t* row, const Lanes& sum) {
    int32_t pair;
    __builtin_memcpy(&pair, row, sizeof pair);
    return {{(Register)_mm512_dpbf16_ps((__m512)sum.part[0], (__m512bh)_mm512_set1_epi32(pair),
                                        (__m512bh)_mm512_loadu_si512(column))}};
  }
};
#endif

// The part of the tree over the lanes First, First + Step, ...: the k-th product belongs to lane k % 16. Every lane
// adds `Depth` products, or as many as there are if it is 0.
template <class Of, int Rows, int Depth, int First, int Step>
QKV_INLINE ColumnSums<Rows> column_sums(const MatmulColumnsCall& d, const typename Of::Element* rows) {
  ColumnSums<Rows> sums;
  if constexpr (Step == kLanes) {
    for (int r = 0; r < Rows; ++r) sums.of[r] = splat(0);
    const auto* columns = static_cast<const typename Of::Element*>(d.columns);
    const auto add = [&](int64_t k) __attribute__((always_inline)) {
      for (int r = 0; r < Rows; ++r) {
        sums.of[r] = Of::multiply(columns + k * kColumns, rows + r * d.row_stride + k, sums.of[r]);
      }
    };
    constexpr int64_t kFirst = First * Of::kWidth, kStep = kLanes * Of::kWidth;
    if constexpr (Depth > 0) {
      for (int i = 0; i < Depth; ++i) add(kFirst + i * kStep);
    } else {
      for (int64_t k = kFirst; k < d.inner; k += kStep) add(k);
    }
  } else {
    sums = column_sums<Of, Rows, Depth, First, 2 * Step>(d, rows);
    const ColumnSums<Rows> more = column_sums<Of, Rows, Depth, First + Step, 2 * Step>(d, rows);
    for (int r = 0; r < Rows; ++r) sums.of[r] = sums.of[r] + more.of[r];
  }
  return sums;
}

template <class Of, int Rows, int Depth>
void column_tile(const MatmulColumnsCall& d, int64_t first) {
  const auto* rows = static_cast<const typename Of::Element*>(d.rows) + first * d.row_stride;
  const ColumnSums<Rows> sums = column_sums<Of, Rows, Depth, 0, 1>(d, rows);
  for (int r = 0; r < Rows; ++r) store(d.y + (first + r) * d.y_stride, sums.of[r]);
}

template <class Of, int Depth>
void matmul_columns_of(const MatmulColumnsCall& d) {
  int64_t i = 0;
  for (; i + kColumnTile <= d.count; i += kColumnTile) column_tile<Of, kColumnTile, Depth>(d, i);
  for (; i < d.count; ++i) column_tile<Of, 1, Depth>(d, i);
}

// Heads of 64 and 128 are unrolled.
template <class Of>
void matmul_columns(const MatmulColumnsCall& d) noexcept {
  constexpr int kDepthOf64 = 64 / (kLanes * Of::kWidth);
  if (d.inner == 64) return matmul_columns_of<Of, kDepthOf64>(d);
  if (d.inner == 128) return matmul_columns_of<Of, 2 * kDepthOf64>(d);
  matmul_columns_of<Of, 0>(d);
}

void to_columns(uint32_t* y, const uint32_t* x, int64_t stride, int64_t rows, int64_t cols) noexcept {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < kColumns; ++r) y[c * kColumns + r] = r < rows ? x[r * stride + c] : 0;
  }
}

// matmul_nn with `add`, bit for bit, for few rows and a short inner index: 64 columns at a time, all in registers.
#if defined(__AVX512F__)
template <int Rows, class T>
void nn_tile_of_64(const MatmulNnCall& d, const float* a, const T* b, float* y) {
  constexpr int kCols = 4;
  Register sums[unsigned{Rows}][kCols];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < kCols; ++c) sums[r][c] = load(y + r * d.y_stride + c * kLanes).part[0];
  }
  for (int64_t l = 0; l < d.inner; ++l) {
    Register right[kCols];
    for (int c = 0; c < kCols; ++c) right[c] = load(b + l * d.b_stride + c * kLanes).part[0];
    for (int r = 0; r < Rows; ++r) {
      const Register left = splat_register(a[r * d.a_row + l * d.a_inner]);
      for (int c = 0; c < kCols; ++c) sums[r][c] = multiply_add(left, right[c], sums[r][c]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < kCols; ++c) store(y + r * d.y_stride + c * kLanes, Lanes{{sums[r][c]}});
  }
}
#endif

template <class T>
void small_matmul_nn(const MatmulNnCall& d) noexcept {
  MatmulNnCall rest = d;
#if defined(__AVX512F__)
  constexpr int64_t kWide = 64;
  constexpr int kRows = 4;
  const int64_t wide = d.cols / kWide * kWide;
  for (int64_t column = 0; column < wide; column += kWide) {
    const T* b = static_cast<const T*>(d.b) + column;
    int64_t m = 0;
    for (; m + kRows <= d.rows; m += kRows) {
      nn_tile_of_64<kRows>(d, d.a + m * d.a_row, b, d.y + m * d.y_stride + column);
    }
    for (; m < d.rows; ++m) nn_tile_of_64<1>(d, d.a + m * d.a_row, b, d.y + m * d.y_stride + column);
  }
  if (wide == d.cols) return;
  rest.b = static_cast<const T*>(d.b) + wide;
  rest.y += wide;
  rest.cols -= wide;
#endif
  matmul_nn<T>(rest);
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
  const Lanes mass = over_keys([&](const Lanes& sum, int64_t j) {
    const Lanes prob = exp(load(s.scores + j * kColumns) + shift);
    store(s.probs + j * kColumns, prob);
    return sum + prob;
  });
  store(s.rescale, rescale);
  store(s.highest, top);
  store(s.mass, mass);
  store(s.total, load(s.total) * rescale + mass);
}

// Sums of p * score and of p * (position - key), the part of the tree over the keys First, First + Step, ...
struct KeySums {
  Lanes mass_x, distance;
};
template <int First, int Step>
QKV_INLINE KeySums key_sums(const StatsColumns& s) {
  if constexpr (Step == kLanes) {
    KeySums sums{splat(0), splat(0)};
    Lanes away = load(s.from) - splat(First);
    for (int64_t j = First; j < kKeyBlock; j += kLanes) {
      const Lanes p = load(s.probs + j * kColumns);
      const Lanes seen = each(load(s.scores + j * kColumns), [](Register x) {
        return x == splat_register(-__builtin_inff()) ? Register{} : x;  // 0 * -inf would be NaN
      });
      sums.mass_x = multiply_add(p, seen, sums.mass_x);
      sums.distance = multiply_add(p, away, sums.distance);
      away = away - splat(kLanes);
    }
    return sums;
  } else {
    const KeySums sums = key_sums<First, 2 * Step>(s), more = key_sums<First + Step, 2 * Step>(s);
    return {sums.mass_x + more.mass_x, sums.distance + more.distance};
  }
}

void stats_columns(StatsColumns& s) noexcept {
  const Lanes one = splat(1);
  Lanes top = splat(-__builtin_inff()), where = splat(0), key = splat(0);
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    const Lanes x = load(s.scores + j * kColumns);
    where = if_less(top, x, key, where);
    top = lanes_max(top, x);
    key = key + one;
  }
  const KeySums sums = key_sums<0, 1>(s);
  store(s.mass_x, sums.mass_x);
  store(s.distance, sums.distance);
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
