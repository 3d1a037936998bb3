#include "core/host_values.h"

#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace qkv {

std::vector<int32_t> host_ints(const Tensor& t) {
  QKV_ASSERT(t.dtype() == DType::i32 && t.contiguous(), "host_ints: got ", t);
  std::vector<int32_t> out(static_cast<size_t>(t.count()));
  t.device().download(out.data(), t.data(), t.count() * size_of(DType::i32));
  return out;
}

namespace {

float float_at(const std::byte* from, DType dtype) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  if (dtype == DType::f64) {
    double wide = 0;
    std::memcpy(&wide, from, sizeof(wide));
    return static_cast<float>(wide);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return dtype == DType::bf16 ? to_float(Bf16{bits}) : to_float(F16{bits});
}

// Elements from the first to the last one in memory.
int64_t extent(const Tensor& t) {
  int64_t last = 0;
  for (int axis = 0; axis < t.rank(); ++axis) last += (t.dim(axis) - 1) * t.stride(axis);
  return last + 1;
}

}  // namespace

std::vector<float> host_floats(const Tensor& t) {
  constexpr int64_t kWasted = 4;  // of what a download brings; a device takes its time for each
  const int64_t size = size_of(t.dtype());
  const bool plain = t.dtype() == DType::f32 && t.contiguous();
  if (plain && &t.device() == &cpu_device()) return {t.as<const float>(), t.as<const float>() + t.count()};
  std::vector<float> values(static_cast<size_t>(t.count()));
  if (values.empty()) return values;
  if (plain) {
    t.device().download(values.data(), t.data(), t.count() * size);
    return values;
  }
  const bool at_once = extent(t) <= kWasted * t.count();
  const int64_t step = (t.rank() == 0 ? 1 : t.stride(-1)) * size;
  std::vector<std::byte> bytes(static_cast<size_t>((at_once ? extent(t) : t.cols()) * size));
  if (at_once) t.device().download(bytes.data(), t.data(), std::ssize(bytes));
  for (int64_t r = 0; r < t.rows(); ++r) {
    const int64_t at = r * t.cols(), first = t.element_offset(at) * size;
    if (!at_once) t.device().download(bytes.data(), t.data() + first, std::ssize(bytes));
    const std::byte* from = bytes.data() + (at_once ? first : 0);
    for (int64_t c = 0; c < t.cols(); ++c) {
      values[static_cast<size_t>(at + c)] = float_at(from + c * step, t.dtype());
    }
  }
  return values;
}

}  // namespace qkv
