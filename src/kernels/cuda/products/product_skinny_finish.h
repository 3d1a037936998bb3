// The end of a product of few rows: bias, activation, gate and residual, with the bits of separate kernels.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda::skinny {

// Keeps a number in its register; the compiler would read the kernel's arguments again for every output.
__device__ inline void hold(std::byte*& pointer) {
  asm volatile("" : "+l"(pointer));
}
__device__ inline void hold(int& number) {
  asm volatile("" : "+r"(number));
}

// A matrix of f32 or bf16 with its rows apart.
struct Plane {
  std::byte* data = nullptr;
  int stride = 0, narrow = 0;

  Plane() = default;
  explicit Plane(const Tensor& t) {
    if (!t.defined()) return;
    data = t.data();
    stride = t.rank() == 2 ? static_cast<int>(t.stride(0)) : 0;
    narrow = t.dtype() == DType::bf16 ? 1 : 0;
  }
  __device__ explicit operator bool() const { return data != nullptr; }
  __device__ int64_t at(int m, int n) const { return static_cast<int64_t>(m) * stride + n; }
  __device__ float get(int m, int n) const {
    return narrow != 0 ? __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[at(m, n)])
                       : reinterpret_cast<const float*>(data)[at(m, n)];
  }
  __device__ void set(int m, int n, float value) const {
    if (narrow != 0) {
      reinterpret_cast<__nv_bfloat16*>(data)[at(m, n)] = __float2bfloat16_rn(value);
    } else {
      reinterpret_cast<float*>(data)[at(m, n)] = value;
    }
  }
  __device__ float rounded(float value) const {
    return narrow != 0 ? __bfloat162float(__float2bfloat16_rn(value)) : value;
  }
  __device__ Plane held() const {
    Plane p = *this;
    hold(p.data);
    hold(p.stride);
    hold(p.narrow);
    return p;
  }
};

// One weight with its results.
struct Piece {
  Plane y, bias, residual, gate, pre;
  Gating form;
  int n = 0, first = 0;  // outputs, first block
};

// The outputs of a block of threads: sums [rows][kStride] in shared memory, a thread takes every 128th. The first of what
// they are added to, or gated by, is read when this is made, long before it is needed.
template <int kStride>
struct Finish {
  Plane y, bias, other, gate_y, gate_bias;
  int m, n, first_n, shift, thread;  // 1 << shift columns
  bool adds, paired;
  float first_other = 0;

  __device__ Finish(const Piece& p, const Piece* gate, int rows, int first, int columns_shift)
      : m(rows), first_n(first), shift(columns_shift), thread(static_cast<int>(threadIdx.x)), paired(gate != nullptr) {
    y = p.y.held();
    bias = p.bias.held();
    adds = static_cast<bool>(p.residual);
    other = (adds ? p.residual : p.gate).held();
    if (paired) {
      gate_y = gate->y.held();
      gate_bias = gate->bias.held();
    }
    n = p.n;
    if (other && !paired && inside(thread)) first_other = other.get(row(thread), column(thread));
  }
  __device__ int row(int i) const { return i >> shift; }
  __device__ int column(int i) const { return first_n + (i & ((1 << shift) - 1)); }
  __device__ bool inside(int i) const { return row(i) < m && column(i) < n; }
  __device__ float with_bias(float sum, int i) const { return bias ? sum + bias.get(0, column(i)) : sum; }
  __device__ float other_of(int i) const { return i == thread ? first_other : other.get(row(i), column(i)); }

  // y = sum + bias, or residual + that.
  __device__ void plainly(const float* sums) const {
#pragma unroll 4
    for (int i = thread; i < m << shift; i += 128) {
      if (!inside(i)) continue;
      const float s = with_bias(sums[row(i) * kStride + column(i) - first_n], i);
      y.set(row(i), column(i), adds ? other_of(i) + s : s);
    }
  }
  // y = act(s) or gated(gate, s); s, and gates that come from this block, are rounded as if they had been stored.
  __device__ void through(const float* sums, const Piece& p) const {
    const Plane pre = p.pre.held();
    Gating form = p.form;
    if (!other) form.limit = form.shift = 0;  // an activation alone
#pragma unroll 1
    for (int i = thread; i < m << shift; i += 128) {
      if (!inside(i)) continue;
      const int r = row(i), c = column(i);
      const float* sum = sums + r * kStride + c - first_n;
      float gate = 0;
      if (paired) {
        gate = gate_y.rounded(gate_bias ? sum[0] + gate_bias.get(0, c) : sum[0]);
        gate_y.set(r, c, gate);
      } else if (other) {
        gate = other_of(i);
      }
      const float up = with_bias(sum[paired ? 1 << shift : 0], i), s = pre ? pre.rounded(up) : y.rounded(up);
      if (pre) pre.set(r, c, s);
      const GateParts<float> parts(form, other ? gate : s, s);
      y.set(r, c, other ? parts.act * parts.up : parts.act);
    }
  }
};

}  // namespace qkv::kernels::cuda::skinny
