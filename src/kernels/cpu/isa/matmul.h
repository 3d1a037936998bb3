// matmul_nt and matmul_nn (see isa_kernels.h): register tiles of outputs, operands read in place, nothing packed.
// AVX-512 has its own matmul_nt in matmul_blocked.h.
#pragma once

#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/simd.h"

namespace qkv::kernels::cpu {
namespace {

// Accumulators a tile holds in registers, sixteen lanes each.
#if defined(__AVX512F__)
constexpr int kNnRows = 8, kNnCols = 3;  // 8 x 48 outputs
#elif defined(__AVX2__)
constexpr int kNtRows = 2, kNtCols = 3;  // 12 of 16
constexpr int kNnRows = 6, kNnCols = 1;
#else
constexpr int kNtRows = 1, kNtCols = 2;
constexpr int kNnRows = 2, kNnCols = 1;
#endif

// What stays in the L1 cache while the other operand streams through.
constexpr int64_t kCacheBytes = 24 << 10;

#if !defined(__AVX512F__)

template <int Rows, int Cols, class T>
void nt_tile(const MatmulNtCall& d, const T* x, const T* w, float* y) {
  Lanes sums[unsigned{Rows}][unsigned{Cols}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) sums[r][c] = splat(0);
  }
  const auto step = [&](auto load_at) __attribute__((always_inline)) {
    Lanes left[unsigned{Rows}];
    for (int r = 0; r < Rows; ++r) left[r] = load_at(x + r * d.x_stride);
    for (int c = 0; c < Cols; ++c) {
      const Lanes right = load_at(w + c * d.w_stride);
      for (int r = 0; r < Rows; ++r) sums[r][c] = multiply_add(left[r], right, sums[r][c]);
    }
  };
  const int64_t whole = d.inner / kLanes * kLanes, rest = d.inner - whole;
  for (int64_t k = 0; k < whole; k += kLanes) {
    step([k](const T* p) __attribute__((always_inline)) { return load(p + k); });
  }
  if (rest > 0) {
    step([ whole, rest ](const T* p) __attribute__((always_inline)) { return load_some(p + whole, rest); });
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) y[r * d.y_stride + c] = sum(sums[r][c]);
  }
}

template <int Rows, class T>
void nt_columns(const MatmulNtCall& d, int64_t m, int64_t first, int64_t end) {
  const T* x = static_cast<const T*>(d.x) + m * d.x_stride;
  const T* w = static_cast<const T*>(d.w);
  float* y = d.y + m * d.y_stride;
  constexpr int kCols = Rows == 1 ? 2 * kNtCols : kNtCols;  // one row is bound by memory: more streams at once
  int64_t o = first;
  for (; o + kCols <= end; o += kCols) nt_tile<Rows, kCols>(d, x, w + o * d.w_stride, y + o);
  for (; o < end; ++o) nt_tile<Rows, 1>(d, x, w + o * d.w_stride, y + o);
}

template <class T>
void matmul_nt(const MatmulNtCall& d) noexcept {
  // A few weight rows stay in the cache while all rows of x stream through.
  const int64_t row_bytes = d.inner * static_cast<int64_t>(sizeof(T)) + 1;
  int64_t block = kCacheBytes / row_bytes / (2 * kNtCols) * (2 * kNtCols);
  if (block < 2 * kNtCols) block = 2 * kNtCols;
  for (int64_t first = 0; first < d.outputs; first += block) {
    const int64_t end = first + block < d.outputs ? first + block : d.outputs;
    int64_t m = 0;
    for (; m + kNtRows <= d.rows; m += kNtRows) nt_columns<kNtRows, T>(d, m, first, end);
    for (; m < d.rows; ++m) nt_columns<1, T>(d, m, first, end);
  }
}

#endif

// One pass over a panel of b.
struct NnPanel {
  int64_t from, to;  // of the inner index
  bool add;
};

// Columns [0, 16 Cols) from the given pointers; the last sixteen have only `last` columns.
template <int Rows, int Cols, class T>
void nn_tile(const MatmulNnCall& d, const NnPanel& panel, const float* a, const T* b, float* y, int64_t last) {
  const auto load_columns = [last](const auto* p, int c) __attribute__((always_inline)) {
    return c + 1 == Cols && last < kLanes ? load_some(p + c * kLanes, last) : load(p + c * kLanes);
  };
  Lanes sums[unsigned{Rows}][unsigned{Cols}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) sums[r][c] = panel.add ? load_columns(y + r * d.y_stride, c) : splat(0);
  }
  for (int64_t l = panel.from; l < panel.to; ++l) {
    Lanes right[unsigned{Cols}];
    for (int c = 0; c < Cols; ++c) right[c] = load_columns(b + l * d.b_stride, c);
    for (int r = 0; r < Rows; ++r) {
      const Lanes left = splat(a[r * d.a_row + l * d.a_inner]);
      for (int c = 0; c < Cols; ++c) sums[r][c] = multiply_add(left, right[c], sums[r][c]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) {
      float* at = y + r * d.y_stride + c * kLanes;
      if (c + 1 == Cols && last < kLanes) {
        store_some(at, sums[r][c], last);
      } else {
        store(at, sums[r][c]);
      }
    }
  }
}

template <int Cols, class T>
void nn_rows(const MatmulNnCall& d, const NnPanel& panel, int64_t column, int64_t last) {
  const T* b = static_cast<const T*>(d.b) + column;
  int64_t m = 0;
  for (; m + kNnRows <= d.rows; m += kNnRows) {
    nn_tile<kNnRows, Cols>(d, panel, d.a + m * d.a_row, b, d.y + m * d.y_stride + column, last);
  }
  for (; m < d.rows; ++m) nn_tile<1, Cols>(d, panel, d.a + m * d.a_row, b, d.y + m * d.y_stride + column, last);
}

template <class T>
void matmul_nn(const MatmulNnCall& d) noexcept {
  // A panel of b stays in the cache while all rows stream through. Storing a sum in y between panels does not round it.
  constexpr int64_t kPanel = kCacheBytes / (kNnCols * kLanes * static_cast<int64_t>(sizeof(float)));
  NnPanel panel{0, 0, d.add};
  do {
    panel.to = panel.from + kPanel < d.inner ? panel.from + kPanel : d.inner;
    int64_t column = 0;
    for (; column + kNnCols * kLanes <= d.cols; column += kNnCols * kLanes) {
      nn_rows<kNnCols, T>(d, panel, column, kLanes);
    }
    for (; column < d.cols; column += kLanes) {
      nn_rows<1, T>(d, panel, column, d.cols - column < kLanes ? d.cols - column : kLanes);
    }
    panel = {panel.to, panel.to, true};
  } while (panel.from < d.inner);
}

}  // namespace
}  // namespace qkv::kernels::cpu
