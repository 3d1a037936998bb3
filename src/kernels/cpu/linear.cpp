// y = x w^T + b in f32, with one order along K for any number of rows: sixteen running sums, element k in sum k % 16,
// added up as a tree at the end. Four weight rows at a time share the loads of x. Other dtypes and grouped weights
// take the plain loops.
#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kLanes = 16;

// x . w[i] for `Count` weight rows that lie `stride` apart.
template <int Count>
void dots(const float* x, const float* w, int64_t stride, int64_t inner, float* out) {
  float lanes[static_cast<size_t>(Count)][static_cast<size_t>(kLanes)] = {};
  const int64_t whole = inner / kLanes * kLanes;
  for (int64_t k = 0; k < whole; k += kLanes) {
    for (int i = 0; i < Count; ++i) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[i][lane] += x[k + lane] * w[i * stride + k + lane];
    }
  }
  for (int64_t k = whole; k < inner; ++k) {
    for (int i = 0; i < Count; ++i) lanes[i][k - whole] += x[k] * w[i * stride + k];
  }
  for (int i = 0; i < Count; ++i) {
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) lanes[i][lane] += lanes[i][lane + half];
    }
    out[i] = lanes[i][0];
  }
}

bool plain_f32(const Tensor& t) {
  return t.dtype() == DType::f32 && t.rank() == 2;
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a) noexcept {
  const ref::Split split(*exec.pool);
  if (a.groups.defined() || !plain_f32(a.y) || !plain_f32(a.x) || !plain_f32(a.w) ||
      (a.b.defined() && a.b.dtype() != DType::f32)) {
    return ref::linear(split, a);
  }
  const int64_t outputs = a.y.cols(), inner = a.x.cols(), rows = a.y.rows();
  const int64_t blocks = (outputs + 3) / 4;
  const float* bias = a.b.defined() ? a.b.as<float>() : nullptr;
  split(blocks, [&](ref::Range range) {
    for (int64_t block = range.begin; block < range.end; ++block) {
      const int64_t first = block * 4, count = outputs - first < 4 ? outputs - first : 4;
      const float* w = a.w.as<float>() + first * a.w.stride(0);
      for (int64_t n = 0; n < rows; ++n) {
        const float* x = a.x.as<float>() + n * a.x.stride(0);
        float* y = a.y.as<float>() + n * a.y.stride(0) + first;
        if (count == 4) {
          dots<4>(x, w, a.w.stride(0), inner, y);
        } else {
          for (int64_t i = 0; i < count; ++i) dots<1>(x, w + i * a.w.stride(0), 0, inner, y + i);
        }
        for (int64_t i = 0; bias != nullptr && i < count; ++i) y[i] += bias[first + i];
      }
    }
  });
}

}  // namespace qkv::kernels::cpu
