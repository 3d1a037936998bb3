// The kernels of the GPU, in the order of the table.
#pragma once

#include "core/kernels.h"

namespace qkv::kernels::cuda {

#define QKV_KERNEL(kernel, Args) void kernel(const Exec& exec, const Args& a) noexcept;
QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL

}  // namespace qkv::kernels::cuda
