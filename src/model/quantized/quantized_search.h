// A better scale for each group of q4 than the one that reaches its largest number: the one of least square error.
#pragma once

#include "core/engine.h"

namespace qkv {

// `panels` holds x [O, K] in q4 as ops::quantize left it; both on the host. Scales and values change, the layout stays.
void search_scales(const Exec& exec, const Tensor& panels, std::span<const float> x);

}  // namespace qkv
