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

std::vector<float> host_floats(const Tensor& t) {
  const int64_t size = size_of(t.dtype());
  std::vector<float> values(static_cast<size_t>(t.count()));
  if (t.dtype() == DType::f32 && t.contiguous()) {
    t.device().download(values.data(), t.data(), t.count() * size);
    return values;
  }
  std::vector<std::byte> row(static_cast<size_t>(t.cols() * size));
  for (int64_t r = 0; r < t.rows(); ++r) {
    const int64_t at = r * t.cols();
    t.device().download(row.data(), t.data() + t.element_offset(at) * size, t.cols() * size);
    for (int64_t c = 0; c < t.cols(); ++c) {
      float& value = values[static_cast<size_t>(at + c)];
      const std::byte* from = row.data() + c * size;
      if (t.dtype() == DType::f32) {
        std::memcpy(&value, from, sizeof(value));
      } else if (t.dtype() == DType::f64) {
        double wide = 0;
        std::memcpy(&wide, from, sizeof(wide));
        value = static_cast<float>(wide);
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, from, sizeof(bits));
        value = t.dtype() == DType::bf16 ? to_float(Bf16{bits}) : to_float(F16{bits});
      }
    }
  }
  return values;
}

}  // namespace qkv
