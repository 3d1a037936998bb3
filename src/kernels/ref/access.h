// Reading and writing elements of any float dtype as R, float or double. Slow and plain on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/kernels.h"

namespace qkv::kernels::ref {

struct Range {
  int64_t begin = 0, end = 0;
};

// Calls f.template operator()<R>() with the type a kernel computes in: double if the tensor is f64, else float.
template <class F>
void in_real(const Tensor& t, F&& f) {
  if (t.dtype() == DType::f64) {
    f.template operator()<double>();
  } else {
    f.template operator()<float>();
  }
}

inline int64_t offset_of(const Tensor& t, std::initializer_list<int64_t> leading) {
  int64_t offset = 0;
  int axis = 0;
  for (const int64_t i : leading) offset += i * t.stride(axis++);
  return offset;
}

// Element offset of row r, leading axes flattened.
inline int64_t row_offset(const Tensor& t, int64_t r) {
  int64_t offset = 0;
  for (int axis = t.rank() - 2; axis >= 0; --axis) {
    offset += r % t.dim(axis) * t.stride(axis);
    r /= t.dim(axis);
  }
  return offset;
}

template <class R>
class In {
 public:
  In() = default;
  In(const std::byte* data, DType dtype) : data_(data), dtype_(dtype) {}
  explicit In(const Tensor& t) : In(t, 0, 0) {}
  In(const Tensor& t, std::initializer_list<int64_t> leading) : In(t, offset_of(t, leading), 0) {}
  static In row(const Tensor& t, int64_t r) { return t.defined() ? In(t, row_offset(t, r), 0) : In(); }

  explicit operator bool() const { return data_ != nullptr; }

  R operator[](int64_t i) const {
    switch (dtype_) {
      case DType::f64:
        return static_cast<R>(reinterpret_cast<const double*>(data_)[i]);
      case DType::f32:
        return static_cast<R>(reinterpret_cast<const float*>(data_)[i]);
      case DType::bf16:
        return static_cast<R>(to_float(reinterpret_cast<const Bf16*>(data_)[i]));
      case DType::f16:
        return static_cast<R>(to_float(reinterpret_cast<const F16*>(data_)[i]));
      case DType::i8:
        return static_cast<R>(reinterpret_cast<const int8_t*>(data_)[i]);
      case DType::i32:
        return static_cast<R>(reinterpret_cast<const int32_t*>(data_)[i]);
      case DType::i64:
        return static_cast<R>(reinterpret_cast<const int64_t*>(data_)[i]);
    }
    return R{};
  }

 private:
  In(const Tensor& t, int64_t offset, int)
      : data_(t.defined() ? t.data() + offset * size_of(t.dtype()) : nullptr), dtype_(t.dtype()) {}

  const std::byte* data_ = nullptr;
  DType dtype_ = DType::f32;
};

template <class R>
class Out {
 public:
  explicit Out(const Tensor& t) : Out(t, 0, 0) {}
  Out(const Tensor& t, std::initializer_list<int64_t> leading) : Out(t, offset_of(t, leading), 0) {}
  static Out row(const Tensor& t, int64_t r) { return Out(t, row_offset(t, r), 0); }

  void set(int64_t i, R value) const {
    switch (dtype_) {
      case DType::f64:
        reinterpret_cast<double*>(data_)[i] = static_cast<double>(value);
        break;
      case DType::f32:
        reinterpret_cast<float*>(data_)[i] = static_cast<float>(value);
        break;
      case DType::bf16:
        reinterpret_cast<Bf16*>(data_)[i] = to_bf16(static_cast<float>(value));
        break;
      case DType::f16:
        reinterpret_cast<F16*>(data_)[i] = to_f16(static_cast<float>(value));
        break;
      case DType::i8:
        reinterpret_cast<int8_t*>(data_)[i] = static_cast<int8_t>(value);
        break;
      case DType::i32:
        reinterpret_cast<int32_t*>(data_)[i] = static_cast<int32_t>(value);
        break;
      case DType::i64:
        reinterpret_cast<int64_t*>(data_)[i] = static_cast<int64_t>(value);
        break;
    }
  }
  void put(int64_t i, R value, bool add) const { set(i, add ? get(i) + value : value); }
  R get(int64_t i) const { return in_[i]; }

 private:
  Out(const Tensor& t, int64_t offset, int)
      : data_(t.data() + offset * size_of(t.dtype())), dtype_(t.dtype()), in_(data_, dtype_) {}

  std::byte* data_;
  DType dtype_;
  In<R> in_;
};

}  // namespace qkv::kernels::ref
