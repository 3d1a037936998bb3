// dw and db of products, where they are asked for.
#pragma once

#include <span>

#include "core/kernels.h"

namespace qkv::kernels::cuda {

// Of one product, or of up to kMostInSet of one x of bf16, without groups.
void weight_gradients(const Exec& exec, std::span<const LinearBackwardArgs> all);

}  // namespace qkv::kernels::cuda
