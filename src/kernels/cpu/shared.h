// Shared by the cpu kernels: rows as the ISA kernels take them, and ways to split work over the threads.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/philox.h"
#include "base/thread_pool.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::cpu {

using ref::Range;

// The dtypes the ISA kernels handle; others take the reference loops.
inline bool is_float(const Tensor& t) {
  return t.format().plain() && (t.dtype() == DType::f32 || t.dtype() == DType::bf16);
}
inline bool all_float(std::initializer_list<const Tensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) { return !t->defined() || is_float(*t); });
}
inline bool all_f32(std::initializer_list<const Tensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor* t) { return !t->defined() || t->dtype() == DType::f32; });
}

// The elements from `offset` on; null if the tensor is absent.
inline FloatRow float_row_at(const Tensor& t, int64_t offset) {
  if (!t.defined()) return {};
  return {t.data() + offset * size_of(t.dtype()), t.dtype() == DType::bf16};
}

inline Matrix matrix_of(const Tensor& t) {
  if (!t.defined()) return {};
  return {t.data(), t.stride(0), t.dtype() == DType::bf16};
}

static_assert(static_cast<int>(Activation::Kind::identity) == static_cast<int>(ActivationKind::identity) &&
              static_cast<int>(Activation::Kind::relu) == static_cast<int>(ActivationKind::relu) &&
              static_cast<int>(Activation::Kind::gelu_erf) == static_cast<int>(ActivationKind::gelu_erf) &&
              static_cast<int>(Activation::Kind::gelu_tanh) == static_cast<int>(ActivationKind::gelu_tanh) &&
              static_cast<int>(Activation::Kind::silu) == static_cast<int>(ActivationKind::silu) &&
              static_cast<int>(Activation::Kind::tanh) == static_cast<int>(ActivationKind::tanh) &&
              static_cast<int>(Activation::Kind::relu_squared) == static_cast<int>(ActivationKind::relu_squared));
inline ActivationKind activation_kind(Activation act) {
  return static_cast<ActivationKind>(act.kind);
}
inline float limit_of(const Gating& form) {
  return form.limit > 0 ? form.limit : std::numeric_limits<float>::infinity();
}

// The rows of a tensor, leading axes flattened. A row is found without divisions where rows are evenly spaced.
class RowsOf {
 public:
  explicit RowsOf(const Tensor& t) : tensor_(t), base_(float_row_at(t, 0)) {
    if (!t.defined()) return;
    size_ = size_of(t.dtype());
    stride_ = t.rank() > 1 ? t.stride(-2) : 0;
    for (int axis = t.rank() - 3; axis >= 0; --axis) {
      even_ = even_ && t.stride(axis) == t.stride(axis + 1) * t.dim(axis + 1);
    }
  }
  FloatRow operator()(int64_t row, int64_t column = 0) const {
    if (base_.data == nullptr) return {};
    const int64_t offset = (even_ ? row * stride_ : ref::row_offset(tensor_, row)) + column;
    return {static_cast<std::byte*>(base_.data) + offset * size_, base_.bf16};
  }

 private:
  const Tensor& tensor_;
  FloatRow base_;
  int64_t size_ = 0, stride_ = 0;
  bool even_ = true;
};

inline const float* f32_or_null(const Tensor& t) {
  return t.defined() ? t.as<float>() : nullptr;
}

// The dropout factor of each element of one row, 0 or 1 / (1 - p). Four columns share a random block: ask in order.
class DropoutFactors {
 public:
  DropoutFactors(const Dropout& dropout, int64_t row)
      : dropout_(dropout), row_(dropout.first_row + static_cast<uint64_t>(row)), factor_(1 / (1 - dropout.p)) {}

  float operator()(uint64_t column) {
    if (column >> 2 != block_) {
      block_ = column >> 2;
      vocab_ = random_block(dropout_.key, row_, column);
    }
    return uniform01(vocab_[column & 3]) >= dropout_.p ? factor_ : 0;
  }

 private:
  const Dropout& dropout_;
  uint64_t row_, block_ = UINT64_MAX;
  float factor_;
  PhiloxCounter vocab_{};
};

// The calling thread's own memory, and its size.
inline int64_t scratch_floats(const Exec& exec) {
  return exec.scratch.dim(1) / size_of(DType::f32);
}
inline float* scratch_of(const Exec& exec, int thread) {
  return exec.scratch.as<float>() + thread * scratch_floats(exec);
}

// How many threads to use: below this many elements per thread, waking one costs more than it saves.
inline int64_t pieces_for(const Exec& exec, int64_t elements) {
  constexpr int64_t kMinElementsPerThread = 4096;
  return std::clamp<int64_t>(elements / kMinElementsPerThread, 1, exec.pool->threads());
}

// [0, count) in `pieces` ranges, cut at multiples of `grain`: f(Range, thread).
template <class F>
void over_pieces(const Exec& exec, int64_t pieces, int64_t count, int64_t grain, F&& f) {
  const int64_t grains = (count + grain - 1) / grain;
  exec.pool->run(pieces, [&](int64_t piece, int thread) {
    const Range range{piece * grains / pieces * grain, std::min((piece + 1) * grains / pieces * grain, count)};
    if (range.begin < range.end) f(range, thread);
  });
}
// One range per thread.
template <class F>
void over_thread_ranges(const Exec& exec, int64_t count, int64_t grain, F&& f) {
  over_pieces(exec, exec.pool->threads(), count, grain, f);
}
// Rows of `cols` elements each.
template <class F>
void over_rows(const Exec& exec, int64_t rows, int64_t cols, F&& f) {
  over_pieces(exec, pieces_for(exec, rows * cols), rows, 1, f);
}

// Elements that are contiguous in every tensor of one shape.
struct ElementRange {
  int64_t row = 0, first = 0, count = 0;
  FloatRow operator()(const Tensor& t) const {
    return t.defined() ? float_row_at(t, ref::row_offset(t, row) + first) : FloatRow{};
  }
};

// Elementwise work: f(ElementRange), row by row, or over flat ranges if all tensors are contiguous. Absent tensors are
// ignored.
template <class F>
void over_elements(const Exec& exec, std::initializer_list<const Tensor*> tensors, F&& f) {
  const Tensor& shape = **tensors.begin();
  if (std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) { return !t->defined() || t->contiguous(); })) {
    return over_pieces(exec, pieces_for(exec, shape.count()), shape.count(), 64, [&](Range range, int) {
      f(ElementRange{0, range.begin, range.end - range.begin});
    });
  }
  over_rows(exec, shape.rows(), shape.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) f(ElementRange{r, 0, shape.cols()});
  });
}

}  // namespace qkv::kernels::cpu
