// What a warp does with its sums of a tile, 2 x 16 rows by 128 or 192 columns: through shared memory, so that whole lines
// are read and written. A warp is alone here while others multiply, so all that can be is loaded ahead and side by side.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/tma.h"

namespace qkv::kernels::cuda {

// A matrix of f32 or bf16 with its rows apart.
struct Plane {
  std::byte* data = nullptr;
  int64_t row = 0;
  bool narrow = false;  // bf16

  Plane() = default;
  explicit Plane(const View& v)
      : data(v.data), row(v.rank >= 2 ? v.strides[v.rank - 2] : 0), narrow(v.dtype == DType::bf16) {}
  __device__ explicit operator bool() const { return data != nullptr; }
  __device__ std::byte* at(int64_t m, int64_t n) const { return data + (m * row + n) * (narrow ? 2 : 4); }
};

// Where results go, and what is added to their columns.
struct Target {
  Plane out, bias;
  int columns = 0;
  float* sums_of_a = nullptr;
};

struct FinishArgs {
  Plane other;  // residual, or out itself where the sums are added to it
  Plane gate, pre, dgate;
  Gating form;
  Kept kept;                     // of sums with their bias, before `other` joins
  const float* scale = nullptr;  // sums are multiplied by it and the factor
  float factor = 1;

  __device__ float scaling() const { return scale != nullptr ? *scale * factor : 1.0F; }
};

// Where a warp's sums belong: rows m .. end_m, columns from n; bias_row of the group, `shift` bytes to its output.
struct Place {
  int m, end_m, n, bias_row;
  int64_t shift;
};

// wide: out = sum (+ bias), f32 or bf16; joined: + other. bare: out = sum, f32. In bf16 alone: sum (+ bias), and forward and
// backward of Fused.
enum class FinishKind { wide, joined, bare, narrow, forward, backward };

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline float2 unpack(uint32_t both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000U));
}
__device__ inline uint4 read_chunk(uint32_t at) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  return v;
}
// The first `bytes` of a chunk of kBytes, the rest zeros; with none, `from` is not read.
template <int kBytes>
__device__ void fetch_chunk(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes)
               : "memory");
}

// Finishes in f32, 16 x 64 sums at a time: such units side by side, 16 chunks of four numbers a row. Shared memory: the sums,
// and what is added to this unit and the next.
template <FinishKind kKind, int kColumns>
struct Finisher {
  static constexpr bool kJoined = kKind == FinishKind::joined;
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kUnitBytes = 4096,
                       kBytes = (kJoined ? 3 : 1) * kUnitBytes;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  uint32_t buffer;
  int lane;

  __device__ static uint32_t at(int r, int c) { return static_cast<uint32_t>(r * 256 + ((c ^ (r & 7) * 2) * 16)); }
  __device__ int row_of(int unit) const { return place.m + unit / kAcross * 64; }
  __device__ int column(int unit) const { return place.n + unit % kAcross * 64 + lane % 16 * 4; }

  // Before there are sums.
  __device__ void begin() const {
    fetch(0);
    fetch(1);
  }
  // Calls for what a unit is joined with.
  __device__ void fetch(int unit) const {
    if (kJoined && unit < kUnits) {
      const int m = row_of(unit) + lane / 16, left = target.columns - column(unit);
      const int size = args.other.narrow ? 2 : 4, bytes = min(max(left, 0), 4) * size;
      const std::byte* from = args.other.at(m, column(unit)) + place.shift;
      const uint32_t to = buffer + (1 + unit % 2) * kUnitBytes;
      const int64_t step = 2 * args.other.row * size;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int some = m + 2 * i < place.end_m ? bytes : 0;
        const uint32_t here = to + at(2 * i + lane / 16, lane % 16);
        if (args.other.narrow) {
          fetch_chunk<8>(here, some > 0 ? from + i * step : args.other.data, some);
        } else {
          fetch_chunk<16>(here, some > 0 ? from + i * step : args.other.data, some);
        }
      }
    }
    if (kJoined) asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Sums of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  __device__ void put(const float* sums) const {
    const uint32_t row = buffer + lane / 4 * 256 + lane % 2 * 8;
    const int swizzle = lane / 4 * 2;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const uint32_t to = row + ((2 * j + lane % 4 / 2) ^ swizzle) * 16;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(sums[4 * j]), "f"(sums[4 * j + 1]) : "memory");
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + 8 * 256), "f"(sums[4 * j + 2]), "f"(sums[4 * j + 3])
                   : "memory");
    }
  }

  __device__ void finish(int unit) const {
    const int n = column(unit), count = target.columns - n;
    const int m = row_of(unit) + lane / 16, rows = count > 0 ? place.end_m - m : 0;
    float bias[4] = {};
    if (target.bias) load_bias(n, bias);
    const float scale = args.scaling();
    std::byte* to = target.out.at(m, n) + place.shift;
    const int64_t step = 2 * target.out.row * (target.out.narrow ? 2 : 4);
#pragma unroll 4
    for (int i = 0; i < 8; ++i) {
      const uint32_t from = buffer + at(2 * i + lane / 16, lane % 16);
      const uint4 raw = read_chunk(from);
      float v[4] = {__uint_as_float(raw.x), __uint_as_float(raw.y), __uint_as_float(raw.z), __uint_as_float(raw.w)};
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] *= scale;
      if (target.bias) {
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] += bias[k];
      }
      if (kJoined && args.kept && 2 * i < rows) args.kept.apply(m + 2 * i, n, v);
      if (kJoined) {
        const uint4 o = read_chunk(from + (1 + unit % 2) * kUnitBytes);
        const float2 low = unpack(o.x), high = unpack(o.y);
        v[0] = (args.other.narrow ? low.x : __uint_as_float(o.x)) + v[0];
        v[1] = (args.other.narrow ? low.y : __uint_as_float(o.y)) + v[1];
        v[2] = (args.other.narrow ? high.x : __uint_as_float(o.z)) + v[2];
        v[3] = (args.other.narrow ? high.y : __uint_as_float(o.w)) + v[3];
      }
      if (2 * i < rows) {
        std::byte* here = to + i * step;
        if (count < 4) {
#pragma unroll
          for (int k = 0; k < 3; ++k) {
            if (k < count) put_one(here, k, v[k]);
          }
        } else if (target.out.narrow) {
          *reinterpret_cast<uint2*>(here) = make_uint2(pack(v[0], v[1]), pack(v[2], v[3]));
        } else {
          *reinterpret_cast<float4*>(here) = make_float4(v[0], v[1], v[2], v[3]);
        }
      }
    }
  }

  // `sums`: of a unit, by its number.
  template <class F>
  __device__ __forceinline__ void run(F sums) const {
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {  // numbers of registers are constants
        if (unit == u) put(sums(u));
      }
      if (kJoined) asm volatile("cp.async.wait_group 1;" ::: "memory");
      __syncwarp();
      finish(unit);
      __syncwarp();
      fetch(unit + 2);
    }
  }

 private:
  // Of this thread's columns, called for at once; those outside are never stored, whatever was added.
  __device__ void load_bias(int n, float (&bias)[4]) const {
    const auto at = [&](int i) { return target.bias.at(place.bias_row, min(n + i, target.columns - 1)); };
    if (target.bias.narrow) {
#pragma unroll
      for (int i = 0; i < 4; ++i) bias[i] = __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at(i)));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) bias[i] = *reinterpret_cast<const float*>(at(i));
    }
  }
  __device__ void put_one(std::byte* to, int k, float v) const {
    if (target.out.narrow) {
      reinterpret_cast<__nv_bfloat16*>(to)[k] = __float2bfloat16_rn(v);
    } else {
      reinterpret_cast<float*>(to)[k] = v;
    }
  }
};

// Straight from the registers, for products whose k is so long that the end hardly counts: the ring has the shared memory.
template <int kColumns>
struct Finisher<FinishKind::bare, kColumns> {
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kBytes = 0;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  uint32_t buffer;
  int lane;

  __device__ void begin() const {}

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    const float scale = args.scaling();
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) {
      const int m = place.m + unit / kAcross * 64 + lane / 4, n = place.n + unit % kAcross * 64 + lane % 4 * 2;
      auto* to = reinterpret_cast<float*>(target.out.at(m, n) + place.shift);
      const float* s = sums(unit);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (n + 8 * j >= target.columns) continue;  // columns are even
#pragma unroll
        for (int low = 0; low < 2; ++low) {
          const float2 two = make_float2(scale * s[4 * j + 2 * low], scale * s[4 * j + 2 * low + 1]);
          if (m + 8 * low < place.end_m) *reinterpret_cast<float2*>(to + 8 * low * target.out.row + 8 * j) = two;
        }
      }
    }
  }
};

}  // namespace qkv::kernels::cuda
