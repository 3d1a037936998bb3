// Products of few rows that share their x, in one launch.
#pragma once

#include <span>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

constexpr int kMostProducts = 3;

// The bits of calling linear for each in order; the second of two may take the first one's y as its gate. At most
// kMostProducts. False if it does not take these operands: more than 64 rows, other dtypes, groups.
bool products_of_few_rows(const Exec& exec, std::span<const LinearArgs> all);

}  // namespace qkv::kernels::cuda
