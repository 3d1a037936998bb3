// dots and mix of bf16 where the CPU multiplies bf16 pairs (vdpbf16ps): nothing is widened. The instruction adds two
// products to a f32 lane, in f32 arithmetic of its own: to nearest, denormals are zeros.
//
//   dots   the inner index is cut into as few blocks of one length, a multiple of 32, as keep it within kDotBlock; in a
//          block element k goes to lane k % 32 / 2 and the lanes are added as a tree (8, 4, 2, 1); blocks are added in
//          order
#pragma once

#include "kernels/cpu/forms/products.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kPairs = 2 * kLanes;  // elements of a register
constexpr int64_t kDotBlock = 1024;     // of the inner index: 8 rows of weights and 4 of x stay close
constexpr int64_t kCloseOutputs = 8;    // rows of weights that stay close while all rows of x pass by
constexpr int64_t kRowsAtOnce = kDotRoom / kDotBlock;

QKV_INLINE __m512bh load_pairs(const uint16_t* x) {
  return (__m512bh)_mm512_loadu_si512(x);
}
QKV_INLINE __mmask32 first_halves(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << count) - 1);
}
QKV_INLINE __m512bh load_some_pairs(const uint16_t* x, __mmask32 which) {
  return (__m512bh)_mm512_maskz_loadu_epi16(which, x);
}

// Some rows of one block of the inner index.
struct PairRows {
  const uint16_t* data;
  int64_t stride;
  const uint16_t* row(int64_t r) const { return data + r * stride; }
};

struct PairBlock {
  PairRows x, w;
  PairRows next;  // weights that are called near meanwhile
  int64_t count;  // of the inner index
};

template <int Rows, int Cols, int Next>
QKV_INLINE void pair_sums(const PairBlock& at, Lanes* sums) {
  __m512 all[unsigned{Rows}][unsigned{Cols}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) all[r][c] = _mm512_setzero_ps();
  }
  const auto step = [&](auto load_at) __attribute__((always_inline)) {
    __m512bh left[unsigned{Rows}];
    for (int r = 0; r < Rows; ++r) left[r] = load_at(at.x.row(r));
    for (int c = 0; c < Cols; ++c) {
      const __m512bh right = load_at(at.w.row(c));
      for (int r = 0; r < Rows; ++r) all[r][c] = _mm512_dpbf16_ps(all[r][c], left[r], right);
    }
  };
  // The last step is masked, also where it is whole: a branch there would put all sums into memory.
  const int64_t last = at.count > 0 ? (at.count - 1) / kPairs * kPairs : 0;
  for (int64_t k = 0; k < last; k += kPairs) {
    for (int n = 0; n < Next; ++n) _mm_prefetch(at.next.row(n) + k, _MM_HINT_T1);
    step([k](const uint16_t* p) __attribute__((always_inline)) { return load_pairs(p + k); });
  }
  const __mmask32 which = first_halves(at.count - last);
  step([ last, which ](const uint16_t* p) __attribute__((always_inline)) { return load_some_pairs(p + last, which); });
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) sums[r * Cols + c].part[0] = (Register)all[r][c];
  }
}

// Where sums over a block go: put down by the first block, added by the others.
struct PairSums {
  float* y;
  int64_t stride;
  bool add;
};

// 4 x 4 outputs.
template <int Next>
QKV_INLINE void pair_tile(const PairBlock& at, const PairSums& to) {
  Lanes sums[16];
  pair_sums<4, 4, Next>(at, sums);
  typedef float Four __attribute__((vector_size(16)));
  const Register all = sums_of_sixteen(sums);
  const Four rows[4] = {__builtin_shufflevector(all, all, 0, 1, 2, 3), __builtin_shufflevector(all, all, 4, 5, 6, 7),
                        __builtin_shufflevector(all, all, 8, 9, 10, 11),
                        __builtin_shufflevector(all, all, 12, 13, 14, 15)};
  for (int r = 0; r < 4; ++r) {
    float* y = to.y + r * to.stride;
    Four before;
    __builtin_memcpy(&before, y, sizeof(before));
    const Four now = to.add ? before + rows[r] : rows[r];
    __builtin_memcpy(y, &now, sizeof(now));
  }
}

// One row, some outputs: as many streams of weights.
template <int Cols, int Next>
void pair_row(const PairBlock& at, const PairSums& to) {
  Lanes sums[unsigned{Cols}];
  pair_sums<1, Cols, Next>(at, sums);
  for (int c = 0; c < Cols; ++c) to.y[c] = to.add ? to.y[c] + sum(sums[c]) : sum(sums[c]);
}

// Rows side by side, zeros up to whole registers.
void lay_pairs(uint16_t* to, const PairRows& from, int64_t rows, int64_t count) {
  for (int64_t r = 0; r < rows; ++r, to += kDotBlock) {
    int64_t k = 0;
    for (; k + kPairs <= count; k += kPairs) _mm512_store_si512(to + k, (__m512i)load_pairs(from.row(r) + k));
    if (k < count) _mm512_store_si512(to + k, (__m512i)load_some_pairs(from.row(r) + k, first_halves(count - k)));
  }
}

QKV_INLINE PairRows from_row(const PairRows& rows, int64_t r) {
  return {rows.row(r), rows.stride};
}

// One block of the inner index, some rows, kCloseOutputs outputs. The first tiles call the next weights near, one line
// a step where there are tiles enough.
void pair_block(PairBlock at, int64_t rows, PairSums to) {
  const PairRows next = at.next, w = at.w;
  int64_t m = 0, called = next.data != nullptr ? 0 : kCloseOutputs;
  for (; m + 4 <= rows; m += 4) {
    for (int64_t c = 0; c < kCloseOutputs; c += 4) {
      at.w = from_row(w, c);
      at.next = from_row(next, called);
      const PairSums four{to.y + m * to.stride + c, to.stride, to.add};
      if (called == kCloseOutputs) {
        pair_tile<0>(at, four);
      } else if (rows >= 2 * kCloseOutputs) {
        pair_tile<1>(at, four);
        called += 1;
      } else {
        pair_tile<4>(at, four);
        called += 4;
      }
    }
    at.x = from_row(at.x, 4);
  }
  at.w = w;
  for (; m < rows; ++m, at.x = from_row(at.x, 1)) {
    const PairSums one{to.y + m * to.stride, to.stride, to.add};
    if (called == kCloseOutputs) {
      pair_row<kCloseOutputs, 0>(at, one);
    } else {
      at.next = next;
      pair_row<kCloseOutputs, kCloseOutputs>(at, one);
      called = kCloseOutputs;
    }
  }
}

// The same for fewer outputs.
void pair_rest(PairBlock at, int64_t rows, int64_t outputs, const PairSums& to) {
  const PairRows w = at.w;
  for (int64_t m = 0; m < rows; ++m, at.x = from_row(at.x, 1)) {
    for (int64_t c = 0; c < outputs; ++c) {
      at.w = from_row(w, c);
      pair_row<1, 0>(at, {to.y + m * to.stride + c, to.stride, to.add});
    }
  }
}

void pair_dots_of(const DotCall& d) {
  const PairRows x{static_cast<const uint16_t*>(d.x), d.x_stride}, w{static_cast<const uint16_t*>(d.w), d.w_stride};
  uint16_t* laid = d.room;
  const bool lay = laid != nullptr && d.rows >= 4;
  // Few rows walk along the weights as they lie; many rows take a block of the inner index at a time.
  const int64_t blocks = d.inner > kDotBlock ? (d.inner + kDotBlock - 1) / kDotBlock : 1;
  const int64_t size = ((d.inner + blocks - 1) / blocks + kPairs - 1) / kPairs * kPairs;
  const int64_t stretch = blocks * d.rows <= kRowsAtOnce ? blocks : 1;
  for (int64_t begin = 0; begin < blocks; begin += stretch) {
    const int64_t end = begin + stretch;
    const auto block_of = [&](int64_t b) {
      const int64_t left = d.inner - b * size;
      return PairBlock{.x = {x.data + b * size, x.stride},
                       .w = {w.data + b * size, w.stride},
                       .next = {nullptr, w.stride},
                       .count = left < size ? left : size};
    };
    const auto place_of = [&](int64_t b) { return laid + (b - begin) * d.rows * kDotBlock; };
    for (int64_t b = begin; b < end && lay; ++b) lay_pairs(place_of(b), block_of(b).x, d.rows, block_of(b).count);
    for (int64_t o = 0; o < d.outputs; o += kCloseOutputs) {
      for (int64_t b = begin; b < end; ++b) {
        const PairSums to{d.y + o, d.y_stride, b > 0};
        PairBlock at = block_of(b);
        at.w = from_row(at.w, o);
        if (lay) at.x = {place_of(b), kDotBlock};
        if (d.outputs - o < kCloseOutputs) {
          pair_rest(at, d.rows, d.outputs - o, to);
          continue;
        }
        if (b + 1 < end) {
          at.next.data = at.w.data + size;
        } else if (o + 2 * kCloseOutputs <= d.outputs) {
          at.next.data = w.row(o + kCloseOutputs) + begin * size;
        }
        pair_block(at, d.rows, to);
      }
    }
  }
}

void pair_dots(const DotCall& d) noexcept {
  DotCall some = d;
  for (int64_t m = 0; m < d.rows; m += kRowsAtOnce) {
    some.x = static_cast<const uint16_t*>(d.x) + m * d.x_stride;
    some.y = d.y + m * d.y_stride;
    some.rows = d.rows - m < kRowsAtOnce ? d.rows - m : kRowsAtOnce;
    pair_dots_of(some);
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu
