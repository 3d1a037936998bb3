// Searches the q4 scale of least squared error for each group, instead of the one that reaches its largest value.
#pragma once

#include "core/engine.h"

namespace qkv {

// `panels` holds x [O, K] in q4 as ops::quantize left it; both on the host. Scales and values change, the layout stays.
void search_scales(const Exec& exec, const Tensor& panels, std::span<const float> x);

}  // namespace qkv
