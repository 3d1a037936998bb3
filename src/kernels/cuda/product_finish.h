// What a warp does with its sums of a tile, 2 x 16 rows by 128 columns. A warp is alone here while others multiply, so all
// that can be is loaded ahead and side by side.
#pragma once

#include "kernels/cuda/product.h"
#include "kernels/cuda/tma.h"

namespace qkv::kernels::cuda {

constexpr int kTileColumns = 128;

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

struct FinishArgs {
  Plane out, bias, other;  // other: residual, or out itself where the sums are added to it
  Plane gate, pre, dgate;
  Gating form;
  int columns = 0;
  const float* scale = nullptr;  // sums are multiplied by it and the factor
  float factor = 1;

  __device__ float scaling() const { return scale != nullptr ? *scale * factor : 1.0F; }
};

// Where a warp's sums belong: rows m .. end_m, columns from n; bias_row of the group, `shift` bytes to its output.
struct Place {
  int m, end_m, n, bias_row;
  int64_t shift;
};

// wide: out = sum (+ bias) (+ other), f32 or bf16. In bf16 alone: sum (+ bias), and forward and backward of Fused.
enum class FinishKind { wide, narrow, forward, backward };

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
__device__ inline void wait_for_chunks() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

// Finishes in f32, straight from registers. A lane has pairs of numbers of the tensor core; neighbours exchange every second
// one, so that each has four side by side: of 16 columns 8 rows at once, 64 bytes of each.
template <FinishKind kKind>
struct Finisher {
  static constexpr int kUnits = 2, kBytes = 0;
  static constexpr int kGroups = kTileColumns / 16, kRows = 4;  // of a lane: lane / 4, + 8, + 64, + 72
  static constexpr int kAhead = 3;                              // groups that are called for before they are needed

  const FinishArgs& args;
  const Place& place;
  uint32_t buffer;
  int lane;
  uint4 others[kAhead][kRows];
  float4 biases[kAhead];
  float scale;

  __device__ int row_of(int k) const { return place.m + lane / 4 + k % 2 * 8 + k / 2 * 64; }
  __device__ int column_of(int group) const { return place.n + 16 * group + lane % 2 * 8 + lane % 4 / 2 * 4; }

  // Before there are sums.
  __device__ void prepare() {
    scale = args.scaling();
#pragma unroll
    for (int group = 0; group < kAhead; ++group) fetch(group);
  }

  // Calls for what a group is joined with. Rows are apart by whole fours, so a four may be read that ends past the columns.
  __device__ void fetch(int group) {
    const int n = column_of(group);
    if (n >= args.columns) return;
    if (args.bias) biases[group % kAhead] = bias_of(n);
    if (!args.other) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row_of(k) >= place.end_m) continue;
      const std::byte* from = args.other.at(row_of(k), n) + place.shift;
      uint4& to = others[group % kAhead][k];
      if (args.other.narrow) {
        const uint2 two = *reinterpret_cast<const uint2*>(from);
        to.x = two.x;
        to.y = two.y;
      } else {
        to = *reinterpret_cast<const uint4*>(from);
      }
    }
  }

  __device__ void finish(int group, int k, float4 v) const {
    const int n = column_of(group), count = args.columns - n;
    v = make_float4(scale * v.x, scale * v.y, scale * v.z, scale * v.w);
    if (args.bias) {
      const float4 b = biases[group % kAhead];
      v = make_float4(v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w);
    }
    if (args.other) {
      const uint4 o = others[group % kAhead][k];
      const float2 low = unpack(o.x), high = unpack(o.y);
      v.x = (args.other.narrow ? low.x : __uint_as_float(o.x)) + v.x;
      v.y = (args.other.narrow ? low.y : __uint_as_float(o.y)) + v.y;
      v.z = (args.other.narrow ? high.x : __uint_as_float(o.z)) + v.z;
      v.w = (args.other.narrow ? high.y : __uint_as_float(o.w)) + v.w;
    }
    if (count <= 0 || row_of(k) >= place.end_m) return;
    std::byte* to = args.out.at(row_of(k), n) + place.shift;
    if (count < 4) {
      put_one(to, 0, v.x);
      if (count > 1) put_one(to, 1, v.y);
      if (count > 2) put_one(to, 2, v.z);
    } else if (args.out.narrow) {
      *reinterpret_cast<uint2*>(to) = make_uint2(pack(v.x, v.y), pack(v.z, v.w));
    } else {
      *reinterpret_cast<float4*>(to) = v;
    }
  }

  // `sums`: of 64 rows, by their number. Of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  template <class F>
  __device__ void run(F sums) {
    const bool odd = lane % 2 != 0;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const float* s = sums(k / 2) + 8 * group + k % 2 * 2;
        const float first = __shfl_xor_sync(0xffffffffU, odd ? s[0] : s[4], 1),
                    second = __shfl_xor_sync(0xffffffffU, odd ? s[1] : s[5], 1);
        finish(group, k, odd ? make_float4(first, second, s[4], s[5]) : make_float4(s[0], s[1], first, second));
      }
      if (group + kAhead < kGroups) fetch(group + kAhead);
    }
  }

 private:
  // Of four columns; what lies outside is never stored, whatever was added.
  __device__ float4 bias_of(int n) const {
    const auto at = [&](int i) { return args.bias.at(place.bias_row, min(n + i, args.columns - 1)); };
    float v[4];
    if (args.bias.narrow) {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at(i)));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = *reinterpret_cast<const float*>(at(i));
    }
    return make_float4(v[0], v[1], v[2], v[3]);
  }
  __device__ void put_one(std::byte* to, int k, float v) const {
    if (args.out.narrow) {
      reinterpret_cast<__nv_bfloat16*>(to)[k] = __float2bfloat16_rn(v);
    } else {
      reinterpret_cast<float*>(to)[k] = v;
    }
  }
};

}  // namespace qkv::kernels::cuda
