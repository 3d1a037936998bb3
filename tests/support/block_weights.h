// Weights in blocks with random numbers, and rows of x for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/philox.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {

// Offsets of the half-precision scales in a GGUF block.
inline std::vector<int> scales_in(Block block) {
  switch (block) {
    case Block::q4_1:
    case Block::q5_1:
    case Block::q4_k:
    case Block::q5_k:
      return {0, 2};
    case Block::q2_k:
      return {80, 82};
    case Block::q3_k:
      return {108};
    case Block::q6_k:
      return {208};
    case Block::mxfp4:
      return {};
    default:
      return {0};
  }
}

// A weight with random bytes and reasonable scales. GGUF blocks start at an odd address and end with the allocation, so
// the address sanitizer catches an overrun.
class BlockWeight {
 public:
  BlockWeight(Format format, const Shape& shape) {
    const Numbers numbers = normals(7, shape.count());
    if (format.panels()) {
      Pass pass;
      param_ = std::make_unique<Param>("w", cpu_device(), format, shape);
      ops::quantize(pass.cx, *param_, pass.input(numbers, shape));
      return;
    }
    const auto size = static_cast<size_t>(format.bytes_for(shape)), each = static_cast<size_t>(format.block_bytes());
    bytes_ = std::make_unique<std::byte[]>(size + 1);
    std::byte* first = bytes_.get() + 1;
    for (size_t i = 0; i < size; ++i) {
      first[i] = static_cast<std::byte>(random_u32({3, 4}, 0, i));
    }
    for (size_t at = 0; at < size; at += each) {
      for (const int offset : scales_in(format.block)) {
        const F16 scale = to_f16(static_cast<float>(numbers[at / each]) * 0.01F);
        std::copy_n(reinterpret_cast<const std::byte*>(&scale), 2, first + at + static_cast<size_t>(offset));
      }
      if (format.block == Block::mxfp4) first[at] = static_cast<std::byte>(120 + at / each % 7);
    }
    param_ = std::make_unique<Param>("w", cpu_device(), format, shape, ParamSource{.in_place = first});
  }

  const Param& param() const { return *param_; }
  // Where the table's tensors are.
  const Param& on(const Kernels& table) const {
    Device& device = table.device();
    if (&device == &cpu_device()) return *param_;
    if (moved_) return *moved_;
    const Tensor own = param_->master();
    moved_ = std::make_unique<Param>("w", device, own.format(), own.shape());
    device.upload(moved_->master().data(), own.data(), own.format().bytes_for(own.shape()));
    return *moved_;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<Param> param_;
  mutable std::unique_ptr<Param> moved_;
};

// Activations whose blocks differ much in size; some are all zero.
inline Numbers activations(int64_t rows, int64_t width) {
  Numbers x = normals(5, rows * width);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = round_to(DType::bf16, x[i] * std::pow(2.0, static_cast<double>(i / 32 % 11) - 5));
    if (i / 32 % 13 == 3) x[i] = 0;
  }
  return x;
}

}  // namespace qkv::test
