// The kernels of the GPU, in the order of the table.
#pragma once

#include "core/kernels.h"

namespace qkv::kernels::cuda {

#define QKV_KERNEL(kernel, Args) void kernel(const Exec& exec, const Args& a) noexcept;
QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
void linear_set(const Exec& exec, std::span<const LinearArgs> all) noexcept;
bool linear_backward_set(const Exec& exec, const Grad& dx, std::span<const LinearBackwardArgs> all) noexcept;
void sum_squares_set(const Exec& exec, std::span<const SumSquaresArgs> all) noexcept;
void adamw_set(const Exec& exec, std::span<const AdamWArgs> all) noexcept;
void first_highest(const Exec& exec, const FirstHighestArgs& a) noexcept;
void cache_heads(const Exec& exec, const CacheHeadsArgs& a) noexcept;
void muon_set(const Exec& exec, std::span<MuonArgs> all) noexcept;

}  // namespace qkv::kernels::cuda
