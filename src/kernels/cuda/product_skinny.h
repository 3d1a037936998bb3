// Products of few rows that share their x, in one launch.
#pragma once

#include <array>
#include <span>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

// As Kernels::linear_set; false if it does not take these operands: more than 64 rows, other dtypes, groups.
bool products_of_few_rows(const Exec& exec, std::span<const LinearArgs> all);

// Weights of the product after the next one, as far as the passes before show: the ends of its matrices, so many bytes in
// all. A kernel that leaves the memory idle may call for them (fetch in launch.h).
struct Bytes {
  const std::byte* data = nullptr;
  int64_t count = 0;
};
std::array<Bytes, 2> weights_ahead(int64_t bytes);

}  // namespace qkv::kernels::cuda
