// Kernels of the cpu tables that have a form of their own; the others are the plain loops on every thread. Each is a
// template on the instruction set's forms, defined and instantiated for all of them in its .cpp.
#pragma once

#include "core/kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"

namespace qkv::kernels::cpu {

void fill(const Exec& exec, const FillArgs& a) noexcept;

template <const IsaKernels& F>
void linear(const Exec& exec, const LinearArgs& a) noexcept;
template <const IsaKernels& F>
void pack_tiles(const Exec& exec, const PackTilesArgs& a) noexcept;
template <const IsaKernels& F>
void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept;

template <const IsaKernels& F>
void attention(const Exec& exec, const AttentionArgs& a) noexcept;
template <const IsaKernels& F>
void attention_backward(const Exec& exec, const AttentionBackwardArgs& a) noexcept;

template <const IsaKernels& F>
void layer_norm(const Exec& exec, const LayerNormArgs& a) noexcept;
template <const IsaKernels& F>
void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void rms_norm(const Exec& exec, const RmsNormArgs& a) noexcept;
template <const IsaKernels& F>
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void copy(const Exec& exec, const CopyArgs& a) noexcept;
template <const IsaKernels& F>
void add(const Exec& exec, const AddArgs& a) noexcept;
template <const IsaKernels& F>
void activation(const Exec& exec, const ActivationArgs& a) noexcept;
template <const IsaKernels& F>
void activation_backward(const Exec& exec, const ActivationBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void dropout(const Exec& exec, const DropoutArgs& a) noexcept;
template <const IsaKernels& F>
void gated(const Exec& exec, const GatedArgs& a) noexcept;
template <const IsaKernels& F>
void gated_backward(const Exec& exec, const GatedBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void rotary(const Exec& exec, const RotaryArgs& a) noexcept;
template <const IsaKernels& F>
void softmax(const Exec& exec, const SoftmaxArgs& a) noexcept;
template <const IsaKernels& F>
void softmax_backward(const Exec& exec, const SoftmaxBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void embedding(const Exec& exec, const EmbeddingArgs& a) noexcept;
template <const IsaKernels& F>
void embedding_backward(const Exec& exec, const EmbeddingBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void scatter_rows(const Exec& exec, const ScatterRowsArgs& a) noexcept;
template <const IsaKernels& F>
void dispatch(const Exec& exec, const DispatchArgs& a) noexcept;
template <const IsaKernels& F>
void combine(const Exec& exec, const CombineArgs& a) noexcept;
template <const IsaKernels& F>
void combine_backward(const Exec& exec, const CombineBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void cross_entropy(const Exec& exec, const CrossEntropyArgs& a) noexcept;
template <const IsaKernels& F>
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a) noexcept;
template <const IsaKernels& F>
void adamw(const Exec& exec, const AdamWArgs& a) noexcept;
template <const IsaKernels& F>
void sgd(const Exec& exec, const SgdArgs& a) noexcept;
template <const IsaKernels& F>
void sum_squares(const Exec& exec, const SumSquaresArgs& a) noexcept;

// Instantiates a kernel for every instruction set of this build.
#if defined(__x86_64__)
#define QKV_FOR_ALL_ISAS(kernel, Args)                                            \
  template void kernel<plain_isa>(const Exec& exec, const Args& a) noexcept;      \
  template void kernel<avx2_isa>(const Exec& exec, const Args& a) noexcept;       \
  template void kernel<avx512_isa>(const Exec& exec, const Args& a) noexcept;     \
  template void kernel<avx512bf16_isa>(const Exec& exec, const Args& a) noexcept; \
  template void kernel<amx_isa>(const Exec& exec, const Args& a) noexcept;
#else
#define QKV_FOR_ALL_ISAS(kernel, Args) template void kernel<plain_isa>(const Exec& exec, const Args& a) noexcept;
#endif

}  // namespace qkv::kernels::cpu
