// Products of few rows that share their x, in one launch.
#pragma once

#include <span>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

// As Kernels::linear_set; false if it does not take these operands: more than 256 rows, or more than 64 where wide tiles are faster, other
// dtypes, groups.
bool products_of_few_rows(const Exec& exec, std::span<const LinearArgs> all);

}  // namespace qkv::kernels::cuda
