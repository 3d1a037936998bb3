// How ops name a dropout mask to kernels.
#pragma once

#include "ops/ops.h"

namespace qkv::ops {

Dropout dropout_of(const Context& cx, const DropoutOptions& options);  // none unless cx.training
// x dropped, added to a residual where there is one.
Tensor drop(Context& cx, const Tensor& x, const Residual& residual);

}  // namespace qkv::ops
