// matmul_nt with AVX-512, for f32, widened bf16, and pairs of bf16 where the CPU multiplies them (vdpbf16ps: two
// products are added to an f32 lane, rounded to nearest, denormals flushed).
//
// Order of additions: the inner index is split into the fewest blocks of equal length, whole cache lines of at most 2
// KiB (of f32 where bf16 is widened). In a block element k goes to lane k % 16 (pairs: k % 32 / 2) and the lanes are added as a tree (8, 4, 2, 1).
// Blocks are added in order.
//
// For a block, eight rows of weights and four of x stay in the L1 cache, all rows of x in L2. Widening takes the ports
// that multiply, so a block of many rows is widened once, where it is packed.
#pragma once

#include <type_traits>

#include "kernels/cpu/isa/matmul.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kBlockBytes = 2048;  // of a row
constexpr int64_t kRowsAtOnce = kMatmulScratch / kBlockBytes;
constexpr int64_t kCachedOutputs = 8;  // rows of weights that stay in L1 while all rows of x stream through
constexpr int64_t kRowsToPack = 4, kRowsToWiden = 9;  // from where on that is made good by the products

struct F32Step {
  using Number = float;
  using Packed = F32Step;  // what multiplies rows once they are packed
  using Vector = __m512;
  static constexpr int64_t kWide = kLanes;
  QKV_INLINE Vector load_at(const float* x) { return _mm512_loadu_ps(x); }
  QKV_INLINE Vector load_first(const float* x, int64_t count) { return _mm512_maskz_loadu_ps(first_bits(count), x); }
  QKV_INLINE __m512 add_product(__m512 sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
};

struct WidenedStep : F32Step {
  using Number = uint16_t;
  using Packed = F32Step;
  QKV_INLINE Vector load_at(const uint16_t* x) { return (__m512)load(x).part[0]; }
  QKV_INLINE Vector load_first(const uint16_t* x, int64_t count) { return (__m512)load_some(x, count).part[0]; }
};

QKV_INLINE __mmask32 first_halves(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << count) - 1);
}

#if defined(__AVX512BF16__)
struct PairStep {
  using Number = uint16_t;
  using Packed = PairStep;
  using Vector = __m512bh;
  static constexpr int64_t kWide = 2 * kLanes;
  QKV_INLINE Vector load_at(const uint16_t* x) { return (__m512bh)_mm512_loadu_si512(x); }
  QKV_INLINE Vector load_first(const uint16_t* x, int64_t count) {
    return (__m512bh)_mm512_maskz_loadu_epi16(first_halves(count), x);
  }
  QKV_INLINE __m512 add_product(__m512 sum, Vector a, Vector b) { return _mm512_dpbf16_ps(sum, a, b); }
};
#endif

// Some rows of one block of the inner index.
template <class T>
struct BlockRows {
  const T* data;
  int64_t stride;
  const T* row(int64_t r) const { return data + r * stride; }
};

template <class T>
struct MatmulBlock {
  BlockRows<T> x, w;
  BlockRows<T> next;  // weights to prefetch
  int64_t count;      // of the inner index
};

template <class Step, int Rows, int Cols, int Next>
QKV_INLINE void block_sums(const MatmulBlock<typename Step::Number>& at, Lanes* sums) {
  using T = typename Step::Number;
  __m512 all[unsigned{Rows}][unsigned{Cols}];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) all[r][c] = _mm512_setzero_ps();
  }
  const auto step = [&](auto load_at) __attribute__((always_inline)) {
    typename Step::Vector left[unsigned{Rows}];
    for (int r = 0; r < Rows; ++r) left[r] = load_at(at.x.row(r));
    for (int c = 0; c < Cols; ++c) {
      const typename Step::Vector right = load_at(at.w.row(c));
      for (int r = 0; r < Rows; ++r) all[r][c] = Step::add_product(all[r][c], left[r], right);
    }
  };
  // The last step is always masked: a branch here would spill all accumulators.
  const int64_t last = at.count > 0 ? (at.count - 1) / Step::kWide * Step::kWide : 0, rest = at.count - last;
  for (int64_t k = 0; k < last; k += Step::kWide) {
    for (int n = 0; n < Next; ++n) _mm_prefetch(at.next.row(n) + k, _MM_HINT_T1);
    step([k](const T* p) __attribute__((always_inline)) { return Step::load_at(p + k); });
  }
  step([ last, rest ](const T* p) __attribute__((always_inline)) { return Step::load_first(p + last, rest); });
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Cols; ++c) sums[r * Cols + c].part[0] = (Register)all[r][c];
  }
}

// One step of the tree for two vectors: lanes of x where the mask is 0, of y where it is 1, plus `crossed`. A blend,
// not two shuffles: shuffles compete with multiplications for a port.
template <int Mask>
QKV_INLINE __m512 folded(__m512 x, __m512 y, __m512 crossed) {
  return _mm512_add_ps(_mm512_mask_blend_ps(static_cast<__mmask16>(Mask), x, y), crossed);
}

// sum() of sixteen vectors at once, the same tree for each: lanes one vector no longer needs hold the next.
QKV_INLINE Register sums_of_sixteen(const Lanes* s) {
  const __m512i quarters = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
  const __m512i singles = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
  __m512 a[8], b[4], c[2];
  for (int i = 0; i < 8; ++i) {
    const Register x = s[i].part[0], y = s[i + 8].part[0];
    const Register crossed =
        __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
    a[i] = folded<0xff00>((__m512)x, (__m512)y, (__m512)crossed);
  }
  for (int i = 0; i < 4; ++i) b[i] = folded<0xf0f0>(a[i], a[i + 4], _mm512_permutex2var_ps(a[i], quarters, a[i + 4]));
  for (int i = 0; i < 2; ++i) c[i] = folded<0xcccc>(b[i], b[i + 2], _mm512_shuffle_ps(b[i], b[i + 2], 0x4e));
  return (Register)folded<0xaaaa>(c[0], c[1], _mm512_permutex2var_ps(c[0], singles, c[1]));
}

// Where the sums of a block go: stored by the first block, added by the others.
struct BlockSums {
  float* y;
  int64_t stride;
  bool add;
};

// 4 x 4 outputs.
template <class Step, int Next>
QKV_INLINE void block_tile(const MatmulBlock<typename Step::Number>& at, const BlockSums& to) {
  Lanes sums[16];
  block_sums<Step, 4, 4, Next>(at, sums);
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
template <class Step, int Cols, int Next>
void block_row(const MatmulBlock<typename Step::Number>& at, const BlockSums& to) {
  Lanes sums[unsigned{Cols}];
  block_sums<Step, 1, Cols, Next>(at, sums);
  for (int c = 0; c < Cols; ++c) to.y[c] = to.add ? to.y[c] + sum(sums[c]) : sum(sums[c]);
}

// Packs rows contiguously, each padded with zeros to whole cache lines.
template <class T>
void pack_rows(T* to, int64_t stride, const BlockRows<T>& from, int64_t rows, int64_t count) {
  constexpr int64_t kLine = 32;  // of two bytes
  const int64_t halves = count * int64_t{sizeof(T)} / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const auto* row = reinterpret_cast<const char*>(from.row(r));
    auto* place = reinterpret_cast<char*>(to + r * stride);
    for (int64_t k = 0; k < halves; k += kLine) {
      const __mmask32 which = first_halves(halves - k < kLine ? halves - k : kLine);
      _mm512_store_si512(place + 2 * k, _mm512_maskz_loadu_epi16(which, row + 2 * k));
    }
  }
}

void pack_rows(float* to, int64_t stride, const BlockRows<uint16_t>& from, int64_t rows, int64_t count) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < count; k += kLanes) {
      const int64_t left = count - k < kLanes ? count - k : kLanes;
      _mm512_store_ps(to + r * stride + k, WidenedStep::load_first(from.row(r) + k, left));
    }
  }
}

template <class T>
QKV_INLINE BlockRows<T> from_row(const BlockRows<T>& rows, int64_t r) {
  return {rows.row(r), rows.stride};
}

// One block of the inner index, some rows, kCachedOutputs outputs. The first tiles prefetch the next weights, one line
// per step if there are enough tiles.
template <class Step>
void blocked_eight_outputs(MatmulBlock<typename Step::Number> at, int64_t rows, BlockSums to) {
  const auto next = at.next, w = at.w;
  int64_t m = 0, prefetched = next.data != nullptr ? 0 : kCachedOutputs;
  for (; m + 4 <= rows; m += 4) {
    for (int64_t c = 0; c < kCachedOutputs; c += 4) {
      at.w = from_row(w, c);
      at.next = from_row(next, prefetched);
      const BlockSums four{to.y + m * to.stride + c, to.stride, to.add};
      if (prefetched == kCachedOutputs) {
        block_tile<Step, 0>(at, four);
      } else if (rows >= 2 * kCachedOutputs) {
        block_tile<Step, 1>(at, four);
        prefetched += 1;
      } else {
        block_tile<Step, 4>(at, four);
        prefetched += 4;
      }
    }
    at.x = from_row(at.x, 4);
  }
  at.w = w;
  for (; m < rows; ++m, at.x = from_row(at.x, 1)) {
    const BlockSums one{to.y + m * to.stride, to.stride, to.add};
    if (prefetched == kCachedOutputs) {
      block_row<Step, kCachedOutputs, 0>(at, one);
    } else {
      at.next = next;
      block_row<Step, kCachedOutputs, kCachedOutputs>(at, one);
      prefetched = kCachedOutputs;
    }
  }
}

// The same for fewer outputs.
template <class Step>
void blocked_few_outputs(MatmulBlock<typename Step::Number> at, int64_t rows, int64_t outputs, const BlockSums& to) {
  const auto w = at.w;
  for (int64_t m = 0; m < rows; ++m, at.x = from_row(at.x, 1)) {
    for (int64_t c = 0; c < outputs; ++c) {
      at.w = from_row(w, c);
      block_row<Step, 1, 0>(at, {to.y + m * to.stride + c, to.stride, to.add});
    }
  }
}

// Some outputs of one block, at most kCachedOutputs.
template <class Step>
void block_outputs(const MatmulBlock<typename Step::Number>& at, int64_t rows, int64_t outputs, const BlockSums& to) {
  if (outputs < kCachedOutputs) {
    blocked_few_outputs<Step>(at, rows, outputs, to);
  } else {
    blocked_eight_outputs<Step>(at, rows, to);
  }
}

// The same with weights that are widened here, and those after them on their way.
void widened_outputs(const MatmulBlock<uint16_t>& at, const BlockRows<float>& x, int64_t rows, int64_t outputs,
                     const BlockSums& to) {
  constexpr int64_t kStride = kBlockBytes / int64_t{sizeof(float)}, kLine = 64 / int64_t{sizeof(uint16_t)};
  alignas(64) float wide[kCachedOutputs * kStride];
  pack_rows(wide, kStride, at.w, outputs, at.count);
  for (int64_t n = 0; n < kCachedOutputs && at.next.data != nullptr; ++n) {
    for (int64_t k = 0; k < at.count; k += kLine) _mm_prefetch(at.next.row(n) + k, _MM_HINT_T1);
  }
  block_outputs<F32Step>({.x = x, .w = {wide, kStride}, .next = {nullptr, 0}, .count = at.count}, rows, outputs, to);
}

template <class Step>
void matmul_nt_at_once(const MatmulNtCall& d) {
  using T = typename Step::Number;
  using Packed = typename Step::Packed::Number;
  constexpr int64_t kBlock = kBlockBytes / int64_t{sizeof(Packed)}, kLine = 64 / int64_t{sizeof(Packed)};
  const BlockRows<T> x{static_cast<const T*>(d.x), d.x_stride}, w{static_cast<const T*>(d.w), d.w_stride};
  auto* packed = static_cast<Packed*>(d.scratch);
  const bool packs = packed != nullptr && d.rows >= (std::is_same_v<T, Packed> ? kRowsToPack : kRowsToWiden);
  // Few rows read whole rows of weights; many rows take a block of the inner index at a time.
  const int64_t blocks = d.inner > kBlock ? (d.inner + kBlock - 1) / kBlock : 1;
  const int64_t size = ((d.inner + blocks - 1) / blocks + kLine - 1) / kLine * kLine;
  const int64_t stretch = blocks * d.rows <= kRowsAtOnce ? blocks : 1;
  for (int64_t begin = 0; begin < blocks; begin += stretch) {
    const int64_t end = begin + stretch;
    const auto block_of = [&](int64_t b) {
      const int64_t left = d.inner - b * size;
      return MatmulBlock<T>{.x = {x.data + b * size, x.stride},
                            .w = {w.data + b * size, w.stride},
                            .next = {nullptr, w.stride},
                            .count = left < size ? left : size};
    };
    const auto place_of = [&](int64_t b) { return packed + (b - begin) * d.rows * size; };
    for (int64_t b = begin; b < end && packs; ++b) {
      const MatmulBlock<T> at = block_of(b);
      pack_rows(place_of(b), size, at.x, d.rows, at.count);
    }
    for (int64_t o = 0; o < d.outputs; o += kCachedOutputs) {
      const int64_t outputs = d.outputs - o < kCachedOutputs ? d.outputs - o : kCachedOutputs;
      for (int64_t b = begin; b < end; ++b) {
        const BlockSums to{d.y + o, d.y_stride, b > 0};
        MatmulBlock<T> at = block_of(b);
        at.w = from_row(at.w, o);
        if (b + 1 < end) {
          at.next.data = at.w.data + size;
        } else if (o + 2 * kCachedOutputs <= d.outputs) {
          at.next.data = w.row(o + kCachedOutputs) + begin * size;
        }
        if constexpr (!std::is_same_v<T, Packed>) {
          if (packs) {
            widened_outputs(at, {place_of(b), size}, d.rows, outputs, to);
            continue;
          }
        } else if (packs) {
          at.x = {place_of(b), size};
        }
        block_outputs<Step>(at, d.rows, outputs, to);
      }
    }
  }
}

template <class Step>
void blocked_matmul_nt(const MatmulNtCall& d) noexcept {
  MatmulNtCall some = d;
  for (int64_t m = 0; m < d.rows; m += kRowsAtOnce) {
    some.x = static_cast<const typename Step::Number*>(d.x) + m * d.x_stride;
    some.y = d.y + m * d.y_stride;
    some.rows = d.rows - m < kRowsAtOnce ? d.rows - m : kRowsAtOnce;
    matmul_nt_at_once<Step>(some);
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu
