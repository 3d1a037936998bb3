// Kernels of the cpu table that have a form of their own; the others are the plain loops on every thread.
#pragma once

#include "core/kernels.h"

namespace qkv::kernels::cpu {

void linear(const Exec& exec, const LinearArgs& a) noexcept;

}  // namespace qkv::kernels::cpu
