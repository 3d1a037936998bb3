// What the warps of a product do with their sums: 16 rows by 64 columns at a time they pass through shared memory, so that
// whole lines are read and written, and are finished there. Chunks of 16 bytes are swizzled: no bank conflicts.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/product.h"
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
  __device__ Plane moved(int64_t bytes) const {
    Plane p = *this;
    p.data += bytes;
    return p;
  }
  __device__ std::byte* at(int64_t m, int64_t n) const { return data + (m * row + n) * (narrow ? 2 : 4); }
  __device__ float get(int64_t m, int64_t n) const {
    return narrow ? __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at(m, n)))
                  : *reinterpret_cast<const float*>(at(m, n));
  }
  __device__ void set(int64_t m, int64_t n, float value) const {
    if (narrow) {
      *reinterpret_cast<__nv_bfloat16*>(at(m, n)) = __float2bfloat16_rn(value);
    } else {
      *reinterpret_cast<float*>(at(m, n)) = value;
    }
  }
};

// kWide: out = sum (+ bias) (+ other), f32 or bf16. kForward, kBackward: see Fused; all in bf16.
enum class FinishKind { wide, forward, backward };

struct FinishArgs {
  Plane out, bias, other;  // other: residual, or out itself where the sums are added to it
  Plane gate, pre, dgate;
  Gating form;
  int columns = 0;
};

constexpr int kUnitRows = 16, kUnitColumns = 64;
constexpr int finish_bytes(FinishKind kind) {  // of a warp
  return kind == FinishKind::wide ? 8192 : kind == FinishKind::forward ? 4096 : 6144;
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline float2 unpack(uint32_t both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000U));
}
template <class T>
__device__ T read_shared(uint32_t at) {
  T v;
  if constexpr (sizeof(T) == 16) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  } else {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  }
  return v;
}
// The first `bytes` of a chunk of kBytes, the rest zeros.
template <int kBytes>
__device__ void fetch_chunk(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes)
               : "memory");
}
__device__ inline void wait_for_chunks() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

// Calls f with an activation whose kind is a constant, so that loops inside have no switch.
template <class F>
__device__ __forceinline__ void with_activation(Activation act, F f) {
  using Kind = Activation::Kind;
  switch (act.kind) {
    case Kind::identity:
      return f(Activation{Kind::identity, act.alpha});
    case Kind::relu:
      return f(Activation{Kind::relu, act.alpha});
    case Kind::gelu_erf:
      return f(Activation{Kind::gelu_erf, act.alpha});
    case Kind::gelu_tanh:
      return f(Activation{Kind::gelu_tanh, act.alpha});
    case Kind::silu:
      return f(Activation{Kind::silu, act.alpha});
    case Kind::tanh:
      return f(Activation{Kind::tanh, act.alpha});
    case Kind::relu_squared:
      return f(Activation{Kind::relu_squared, act.alpha});
  }
}

// f of the eight numbers of up to three chunks of bf16, to one or two results.
template <class F>
__device__ __forceinline__ void map_chunks(const uint4& a, const uint4& b, const uint4& c, uint4& y, uint4& z, F f) {
  const auto* as = &a.x;
  const auto* bs = &b.x;
  const auto* cs = &c.x;
  auto* ys = &y.x;
  auto* zs = &z.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a2 = unpack(as[i]), b2 = unpack(bs[i]), c2 = unpack(cs[i]);
    const float2 low = f(a2.x, b2.x, c2.x), high = f(a2.y, b2.y, c2.y);
    ys[i] = pack(low.x, high.x);
    zs[i] = pack(low.y, high.y);
  }
}

// One warp's part of the work. `buffer`: finish_bytes of shared memory; rows m .. end_m, columns from n.
template <FinishKind kKind>
struct Finisher {
  const FinishArgs& args;
  int64_t shift;  // bytes from args.out to this group's or piece's
  uint32_t buffer;
  int lane = static_cast<int>(threadIdx.x) % 32;

  __device__ Plane out() const { return args.out.moved(shift); }
  __device__ Plane other() const { return args.other.moved(shift); }

  static constexpr int kSumBytes = kKind == FinishKind::wide ? 4096 : 2048;

  // Chunk c of row r: 16 a row in f32, 8 in bf16.
  __device__ static uint32_t wide_at(int r, int c) { return static_cast<uint32_t>(r * 256 + ((c ^ (r & 7) * 2) * 16)); }
  __device__ static uint32_t narrow_at(int r, int c) { return static_cast<uint32_t>(r * 128 + ((c ^ (r & 7)) * 16)); }

  // Calls for what the next 16 x 64 sums will be joined with.
  __device__ void fetch(int m, int end_m, int n) const {
    if constexpr (kKind == FinishKind::wide) {
      if (!args.other) return;
      const int c = lane % 16, left = args.columns - (n + 4 * c);
      const int size = args.other.narrow ? 2 : 4, bytes = left < 4 ? left * size : 4 * size;
#pragma unroll
      for (int r = lane / 16; r < kUnitRows; r += 2) {
        if (m + r >= end_m || left <= 0) continue;
        const std::byte* from = other().at(m + r, n + 4 * c);
        if (args.other.narrow) {
          fetch_chunk<8>(buffer + kSumBytes + wide_at(r, c), from, bytes);
        } else {
          fetch_chunk<16>(buffer + kSumBytes + wide_at(r, c), from, bytes);
        }
      }
    } else {
      const Plane& first = kKind == FinishKind::forward ? args.gate : args.pre;
      const int c = lane % 8;
      if (n + 8 * c >= args.columns) return;
#pragma unroll
      for (int r = lane / 8; r < kUnitRows; r += 4) {
        if (m + r >= end_m) continue;
        const uint32_t to = buffer + kSumBytes + narrow_at(r, c);
        if (first) fetch_chunk<16>(to, first.at(m + r, n + 8 * c), 16);
        if (kKind == FinishKind::backward && args.gate) {
          fetch_chunk<16>(to + 2048, args.gate.at(m + r, n + 8 * c), 16);
        }
      }
    }
  }

  // Eight columns' sums of the tensor core into shared memory: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  __device__ void put(const float* sums, int n, int bias_row) const {
    if constexpr (kKind == FinishKind::wide) {
      const int r = lane / 4;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const uint32_t to = buffer + wide_at(r, 2 * j + lane % 4 / 2) + lane % 2 * 8;
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(sums[4 * j]), "f"(sums[4 * j + 1]) : "memory");
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + 8 * 256), "f"(sums[4 * j + 2]), "f"(sums[4 * j + 3])
                     : "memory");
      }
    } else {
      const int r = lane % 16;
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float2 b = {};
          const int column = n + 8 * (j + i) + 2 * (lane % 4);
          if (args.bias && column < args.columns) {
            b = make_float2(args.bias.get(bias_row, column), args.bias.get(bias_row, column + 1));
          }
          const float* s = sums + 4 * (j + i);
          v[2 * i] = args.bias ? pack(s[0] + b.x, s[1] + b.y) : pack(s[0], s[1]);
          v[2 * i + 1] = args.bias ? pack(s[2] + b.x, s[3] + b.y) : pack(s[2], s[3]);
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         buffer + narrow_at(r, j + lane / 16)),
                     "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                     : "memory");
      }
    }
  }

  __device__ void finish(int m, int end_m, int n, int bias_row) const {
    if constexpr (kKind == FinishKind::wide) {
      finish_wide(m, end_m, n, bias_row);
    } else {
      const bool plain = kKind == FinishKind::forward && !args.gate && args.form.act.kind == Activation::Kind::identity;
      if (plain) return finish_plain(m, end_m, n);
      with_activation(args.form.act, [&](Activation act) {
        Gating form = args.form;
        form.act = act;
        if constexpr (kKind == FinishKind::forward) {
          if (!args.gate) {
            return finish_narrow(m, end_m, n,
                                 [&](float s, float, float) { return make_float2(apply(act, s).value, 0); });
          }
          finish_narrow(m, end_m, n, [&](float s, float gate, float) {
            const GateParts<float> parts(form, gate, s);
            return make_float2(parts.act * parts.up, 0);
          });
        } else {
          if (!args.gate) {
            return finish_narrow(m, end_m, n,
                                 [&](float s, float pre, float) { return make_float2(s * apply(act, pre).slope, 0); });
          }
          finish_narrow(m, end_m, n, [&](float s, float pre, float gate) {
            const GateParts<float> parts(form, gate, pre);
            return make_float2(s * parts.act * parts.up_slope, s * parts.act_slope * parts.up);
          });
        }
      });
    }
  }

 private:
  __device__ void finish_wide(int m, int end_m, int n, int bias_row) const {
    const int c = lane % 16, first = n + 4 * c, count = args.columns - first;
    if (count <= 0) return;
    float bias[4] = {};
    if (args.bias) {
#pragma unroll
      for (int i = 0; i < 4; ++i) bias[i] = i < count ? args.bias.get(bias_row, first + i) : 0;
    }
#pragma unroll 2
    for (int r = lane / 16; r < kUnitRows; r += 2) {
      if (m + r >= end_m) break;
      const uint4 raw = read_shared<uint4>(buffer + wide_at(r, c));
      float v[4] = {__uint_as_float(raw.x), __uint_as_float(raw.y), __uint_as_float(raw.z), __uint_as_float(raw.w)};
      if (args.bias) {
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] += bias[i];
      }
      if (args.other) {
        const uint4 o = read_shared<uint4>(buffer + kSumBytes + wide_at(r, c));
        const float2 low = unpack(o.x), high = unpack(o.y);
        v[0] = (args.other.narrow ? low.x : __uint_as_float(o.x)) + v[0];
        v[1] = (args.other.narrow ? low.y : __uint_as_float(o.y)) + v[1];
        v[2] = (args.other.narrow ? high.x : __uint_as_float(o.z)) + v[2];
        v[3] = (args.other.narrow ? high.y : __uint_as_float(o.w)) + v[3];
      }
      if (count < 4) {
#pragma unroll
        for (int i = 0; i < 3; ++i) {
          if (i < count) out().set(m + r, first + i, v[i]);
        }
      } else if (args.out.narrow) {
        *reinterpret_cast<uint2*>(out().at(m + r, first)) = make_uint2(pack(v[0], v[1]), pack(v[2], v[3]));
      } else {
        *reinterpret_cast<float4*>(out().at(m + r, first)) = make_float4(v[0], v[1], v[2], v[3]);
      }
    }
  }

  __device__ void finish_plain(int m, int end_m, int n) const {
    const int c = lane % 8;
    if (n + 8 * c >= args.columns) return;
#pragma unroll
    for (int r = lane / 8; r < kUnitRows; r += 4) {
      if (m + r >= end_m) continue;
      const uint4 s = read_shared<uint4>(buffer + narrow_at(r, c));
      *reinterpret_cast<uint4*>(out().at(m + r, n + 8 * c)) = s;
      if (args.pre) *reinterpret_cast<uint4*>(args.pre.at(m + r, n + 8 * c)) = s;
    }
  }

  // f(s, first, second) -> {out, dgate}
  template <class F>
  __device__ __forceinline__ void finish_narrow(int m, int end_m, int n, F f) const {
    const int c = lane % 8;
    if (n + 8 * c >= args.columns) return;
#pragma unroll 1
    for (int r = lane / 8; r < kUnitRows; r += 4) {
      if (m + r >= end_m) break;
      const uint32_t from = buffer + narrow_at(r, c);
      const uint4 s = read_shared<uint4>(from);
      uint4 first = {}, second = {}, y, z;
      if (kKind == FinishKind::backward || args.gate) first = read_shared<uint4>(from + kSumBytes);
      if (kKind == FinishKind::backward && args.gate) second = read_shared<uint4>(from + kSumBytes + 2048);
      map_chunks(s, first, second, y, z, f);
      *reinterpret_cast<uint4*>(out().at(m + r, n + 8 * c)) = y;
      if (kKind == FinishKind::forward && args.pre) *reinterpret_cast<uint4*>(args.pre.at(m + r, n + 8 * c)) = s;
      if (kKind == FinishKind::backward && args.dgate) *reinterpret_cast<uint4*>(args.dgate.at(m + r, n + 8 * c)) = z;
    }
  }
};

}  // namespace qkv::kernels::cuda
