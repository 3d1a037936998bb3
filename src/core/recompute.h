// Trades time for memory: only a block's input and output are kept, what lies between is computed again in backward.
#pragma once

#include <functional>

#include "core/context.h"

namespace qkv {

// `block` maps a tensor to one of the same shape and dtype. Bits are those of calling it directly.
Tensor recompute(Context& cx, const Tensor& x, std::function<Tensor(Context&, const Tensor&)> block);

}  // namespace qkv
