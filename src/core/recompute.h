// Activation checkpointing: only a block's input and output are kept; backward computes the rest again.
#pragma once

#include <functional>

#include "core/context.h"

namespace qkv {

// `block` maps a tensor to one of the same shape and dtype. The same bits as calling it directly.
Tensor recompute(Context& cx, const Tensor& x, std::function<Tensor(Context&, const Tensor&)> block);

}  // namespace qkv
