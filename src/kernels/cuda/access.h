// Tensors as device code sees them: plain views, and elements of any float dtype read and written as R, float or double.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

struct View {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  bool flat = true;  // contiguous
  int64_t dims[Shape::kMaxRank] = {}, strides[Shape::kMaxRank] = {};

  View() = default;
  explicit View(const Tensor& t) {
    if (!t.defined()) return;
    data = t.data();
    dtype = t.dtype();
    rank = t.rank();
    flat = t.contiguous();
    for (int axis = 0; axis < rank; ++axis) {
      dims[axis] = t.dim(axis);
      strides[axis] = t.stride(axis);
    }
  }

  __device__ explicit operator bool() const { return data != nullptr; }
  __device__ int64_t cols() const { return rank == 0 ? 1 : dims[rank - 1]; }
  // Element offset of row r, leading axes flattened.
  __device__ int64_t row(int64_t r) const {
    if (rank == 2) return r * strides[0];
    if (flat) return r * cols();
    int64_t offset = 0;
    for (int axis = rank - 2; axis >= 0; --axis) {
      offset += r % dims[axis] * strides[axis];
      r /= dims[axis];
    }
    return offset;
  }
  // Of the i-th element in row-major order.
  __device__ int64_t element(int64_t i) const {
    if (flat) return i;
    int64_t offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += i % dims[axis] * strides[axis];
      i /= dims[axis];
    }
    return offset;
  }
  __device__ int64_t at(int64_t i) const { return i * strides[0]; }
  __device__ int64_t at(int64_t i, int64_t j) const { return i * strides[0] + j * strides[1]; }
  __device__ int64_t at(int64_t i, int64_t j, int64_t k) const { return at(i, j) + k * strides[2]; }

  // The number at an element offset.
  template <class R>
  __device__ R get(int64_t i) const {
    switch (dtype) {
      case DType::f64:
        return static_cast<R>(reinterpret_cast<const double*>(data)[i]);
      case DType::f32:
        return static_cast<R>(reinterpret_cast<const float*>(data)[i]);
      case DType::bf16:
        return static_cast<R>(__bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]));
      case DType::f16:
        return static_cast<R>(__half2float(reinterpret_cast<const __half*>(data)[i]));
      case DType::i8:
        return static_cast<R>(reinterpret_cast<const int8_t*>(data)[i]);
      case DType::i32:
        return static_cast<R>(reinterpret_cast<const int32_t*>(data)[i]);
      case DType::i64:
        return static_cast<R>(reinterpret_cast<const int64_t*>(data)[i]);
    }
    return R{};
  }
  template <class R>
  __device__ void set(int64_t i, R value) const {
    switch (dtype) {
      case DType::f64:
        reinterpret_cast<double*>(data)[i] = static_cast<double>(value);
        break;
      case DType::f32:
        reinterpret_cast<float*>(data)[i] = static_cast<float>(value);
        break;
      case DType::bf16:
        reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(static_cast<float>(value));
        break;
      case DType::f16:
        reinterpret_cast<__half*>(data)[i] = __float2half_rn(static_cast<float>(value));
        break;
      case DType::i8:
        reinterpret_cast<int8_t*>(data)[i] = static_cast<int8_t>(value);
        break;
      case DType::i32:
        reinterpret_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
        break;
      case DType::i64:
        reinterpret_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
        break;
    }
  }
  template <class R>
  __device__ void put(int64_t i, R value, bool add) const {
    set(i, add ? get<R>(i) + value : value);
  }
  __device__ int32_t id(int64_t i) const { return reinterpret_cast<const int32_t*>(data)[i]; }
};

// A Grad on the device.
struct GradView {
  View view;
  bool add = false;
  GradView() = default;
  explicit GradView(const Grad& g) : view(g.tensor), add(g.add) {}
  __device__ explicit operator bool() const { return view.data != nullptr; }
  template <class R>
  __device__ void put(int64_t i, R value) const {
    view.put(i, value, add);
  }
};

// Calls f(R{}) with the type a kernel computes in: double if the tensor is f64, else float.
template <class F>
void in_real(const Tensor& t, F&& f) {
  if (t.dtype() == DType::f64) {
    f(double{});
  } else {
    f(float{});
  }
}

}  // namespace qkv::kernels::cuda
