// The end of a product of few rows: bias, activation, gate and residual, with the bits of separate kernels.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda::skinny {

// A matrix of f32 or bf16 with its rows apart. Packs of four columns are read and written at once where they lie well.
struct Plane {
  std::byte* data = nullptr;
  int stride = 0, narrow = 0, wide = 0;

  Plane() = default;
  explicit Plane(const Tensor& t) {
    if (!t.defined()) return;
    data = t.data();
    stride = t.rank() == 2 ? static_cast<int>(t.stride(0)) : 0;
    narrow = t.dtype() == DType::bf16 ? 1 : 0;
    wide = stride % 4 == 0 && reinterpret_cast<uintptr_t>(data) % (narrow != 0 ? 8 : 16) == 0 ? 1 : 0;
  }
  __device__ explicit operator bool() const { return data != nullptr; }
  __device__ std::byte* at(int m, int n) const {
    return data + (static_cast<int64_t>(m) * stride + n) * (narrow != 0 ? 2 : 4);
  }
  __device__ float get(int m, int n) const {
    const std::byte* from = at(m, n);
    return narrow != 0 ? __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(from))
                       : *reinterpret_cast<const float*>(from);
  }
  __device__ void set(int m, int n, float value) const {
    if (narrow != 0) {
      *reinterpret_cast<__nv_bfloat16*>(at(m, n)) = __float2bfloat16_rn(value);
    } else {
      *reinterpret_cast<float*>(at(m, n)) = value;
    }
  }
  // The first `count` columns of a pack, from column n of row m on.
  __device__ void get(int m, int n, int, float (&v)[1]) const { v[0] = get(m, n); }
  __device__ void set(int m, int n, int, const float (&v)[1]) const { set(m, n, v[0]); }
  __device__ void get(int m, int n, int count, float (&v)[4]) const {
    if (wide != 0 && count == 4) {
      const std::byte* from = at(m, n);
      if (narrow != 0) {
        const uint2 words = *reinterpret_cast<const uint2*>(from);
        v[0] = __uint_as_float(words.x << 16), v[1] = __uint_as_float(words.x & 0xffff0000U);
        v[2] = __uint_as_float(words.y << 16), v[3] = __uint_as_float(words.y & 0xffff0000U);
      } else {
        const float4 four = *reinterpret_cast<const float4*>(from);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const float one = get(m, n + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = k == i ? one : v[k];
    }
  }
  __device__ void set(int m, int n, int count, const float (&v)[4]) const {
    if (wide != 0 && count == 4) {
      std::byte* to = at(m, n);
      if (narrow != 0) {
        const __nv_bfloat162 low = __floats2bfloat162_rn(v[0], v[1]), high = __floats2bfloat162_rn(v[2], v[3]);
        *reinterpret_cast<uint2*>(to) =
            make_uint2(*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high));
      } else {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
      }
      return;
    }
#pragma unroll 1
    for (int i = 0; i < count; ++i) set(m, n + i, i == 0 ? v[0] : i == 1 ? v[1] : i == 2 ? v[2] : v[3]);
  }
  __device__ float rounded(float value) const {
    return narrow != 0 ? __bfloat162float(__float2bfloat16_rn(value)) : value;
  }
  __device__ Plane held(int first_row = 0) const {  // of rows from there on
    Plane p = *this;
    if (data != nullptr) p.data = at(first_row, 0);
    // The compiler would read the kernel's arguments again for every output.
    keep(p.data);
    keep(p.stride);
    keep(p.narrow);
    keep(p.wide);
    return p;
  }
};

// One weight with its results.
struct Piece {
  Plane y, bias, residual, gate, pre;
  Gating form;
  int n = 0, first = 0;  // outputs, first block
};

// The outputs of a block of threads: sums [rows][kStride] in shared memory. A thread takes a pack of columns of a row, then the one
// 128 packs on. What the first pack is added to, or gated by, is read when this is made, long before it is needed. Of up to
// eight rows a pack is one column: a thread has few, and the code for them arrives sooner.
template <int kStride, int kPack>
struct Finish {
  Plane y, bias, other, gate_y, gate_bias;
  int first_m, m, n, first_n, shift, thread;  // 1 << shift packs of columns
  bool adds, paired;
  float first_other[kPack] = {};

  __device__ Finish(const Piece& p, const Piece* gate, int first_row, int rows, int first_column, int columns_shift)
      : first_m(first_row),
        m(rows),
        first_n(first_column),
        shift(columns_shift - (kPack == 4 ? 2 : 0)),
        thread(static_cast<int>(threadIdx.x)),
        paired(gate != nullptr) {
    y = p.y.held(first_m);
    bias = p.bias.held();
    adds = static_cast<bool>(p.residual);
    other = (adds ? p.residual : p.gate).held(first_m);
    if (paired) {
      gate_y = gate->y.held(first_m);
      gate_bias = gate->bias.held();
    }
    n = p.n;
    if (other && !paired && row(thread) < m && columns(thread) > 0) {
      other.get(row(thread), column(thread), columns(thread), first_other);
    }
  }
  __device__ int row(int i) const { return i >> shift; }
  __device__ int column(int i) const { return first_n + kPack * (i & ((1 << shift) - 1)); }
  __device__ int columns(int i) const { return min(n - column(i), kPack); }
  __device__ void load(const float* sums, int i, int part, float (&v)[kPack]) const {
    const float* from = sums + row(i) * kStride + column(i) - first_n + part;
#pragma unroll
    for (int k = 0; k < kPack; ++k) v[k] = from[k];
  }
  __device__ void add_bias(const Plane& to_add, int i, float (&v)[kPack]) const {
    if (!to_add) return;
    float b[kPack] = {};
    to_add.get(0, column(i), columns(i), b);
#pragma unroll
    for (int k = 0; k < kPack; ++k) v[k] += b[k];
  }
  __device__ void load_other(int i, float (&v)[kPack]) const {
#pragma unroll
    for (int k = 0; k < kPack; ++k) v[k] = first_other[k];
    if (i != thread) other.get(row(i), column(i), columns(i), v);
  }

  // y = sum + bias, or residual + that.
  __device__ void plainly(const float* sums) const {
#pragma unroll 1
    for (int i = thread; i < m << shift; i += 128) {
      if (columns(i) <= 0) continue;
      float s[kPack];
      load(sums, i, 0, s);
      add_bias(bias, i, s);
      if (adds) {
        float to[kPack];
        load_other(i, to);
#pragma unroll
        for (int k = 0; k < kPack; ++k) s[k] = to[k] + s[k];
      }
      y.set(row(i), column(i), columns(i), s);
    }
  }
  // y = act(s) or gated(gate, s); s, and gates that come from this block, are rounded as if they had been stored.
  __device__ void through(const float* sums, const Piece& p) const {
    const Plane pre = p.pre.held(first_m);
    Gating form = p.form;
    if (!other) form.limit = form.shift = 0;  // an activation alone
#pragma unroll 1
    for (int i = thread; i < m << shift; i += 128) {
      if (columns(i) <= 0) continue;
      float gate[kPack] = {}, s[kPack];
      if (paired) {
        load(sums, i, 0, gate);
        add_bias(gate_bias, i, gate);
#pragma unroll
        for (int k = 0; k < kPack; ++k) gate[k] = gate_y.rounded(gate[k]);
        gate_y.set(row(i), column(i), columns(i), gate);
      } else if (other) {
        load_other(i, gate);
      }
      load(sums, i, paired ? kPack << shift : 0, s);
      add_bias(bias, i, s);
#pragma unroll
      for (int k = 0; k < kPack; ++k) s[k] = pre ? pre.rounded(s[k]) : y.rounded(s[k]);
      if (pre) pre.set(row(i), column(i), columns(i), s);
      by_kind(form.act.kind, [&](auto kind) {
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
          const GateParts<float> parts(kind, form, other ? gate[k] : s[k], s[k]);
          s[k] = other ? parts.act * parts.up : parts.act;
        }
      });
      y.set(row(i), column(i), columns(i), s);
    }
  }
};

}  // namespace qkv::kernels::cuda::skinny
