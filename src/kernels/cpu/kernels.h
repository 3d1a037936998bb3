// Kernels of the cpu tables that are not the reference loops split over the threads. Each is compiled once and calls
// the inner loops of an instruction set through `isa`; table.cpp makes the table's entries of them.
#pragma once

#include "core/kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"

namespace qkv::kernels::cpu {

void fill(const Exec& exec, const FillArgs& a) noexcept;

void linear(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) noexcept;
void pack_tiles(const Exec& exec, const PackTilesArgs& a, const IsaKernels& isa) noexcept;
void linear_backward(const Exec& exec, const LinearBackwardArgs& a, const IsaKernels& isa) noexcept;

void attention(const Exec& exec, const AttentionArgs& a, const IsaKernels& isa) noexcept;
void attention_backward(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) noexcept;
void attention_pattern(const Exec& exec, const AttentionPatternArgs& a, const IsaKernels& isa) noexcept;

void layer_norm(const Exec& exec, const LayerNormArgs& a, const IsaKernels& isa) noexcept;
void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a, const IsaKernels& isa) noexcept;
void rms_norm(const Exec& exec, const RmsNormArgs& a, const IsaKernels& isa) noexcept;
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a, const IsaKernels& isa) noexcept;
void copy(const Exec& exec, const CopyArgs& a, const IsaKernels& isa) noexcept;
void add(const Exec& exec, const AddArgs& a, const IsaKernels& isa) noexcept;
void activation(const Exec& exec, const ActivationArgs& a, const IsaKernels& isa) noexcept;
void activation_backward(const Exec& exec, const ActivationBackwardArgs& a, const IsaKernels& isa) noexcept;
void dropout(const Exec& exec, const DropoutArgs& a, const IsaKernels& isa) noexcept;
void gated(const Exec& exec, const GatedArgs& a, const IsaKernels& isa) noexcept;
void gated_backward(const Exec& exec, const GatedBackwardArgs& a, const IsaKernels& isa) noexcept;
void rotary(const Exec& exec, const RotaryArgs& a, const IsaKernels& isa) noexcept;
void softmax(const Exec& exec, const SoftmaxArgs& a, const IsaKernels& isa) noexcept;
void softmax_backward(const Exec& exec, const SoftmaxBackwardArgs& a, const IsaKernels& isa) noexcept;
void embedding(const Exec& exec, const EmbeddingArgs& a, const IsaKernels& isa) noexcept;
void embedding_backward(const Exec& exec, const EmbeddingBackwardArgs& a, const IsaKernels& isa) noexcept;
void scatter_rows(const Exec& exec, const ScatterRowsArgs& a, const IsaKernels& isa) noexcept;
void dispatch(const Exec& exec, const DispatchArgs& a, const IsaKernels& isa) noexcept;
void combine(const Exec& exec, const CombineArgs& a, const IsaKernels& isa) noexcept;
void combine_backward(const Exec& exec, const CombineBackwardArgs& a, const IsaKernels& isa) noexcept;
void cross_entropy(const Exec& exec, const CrossEntropyArgs& a, const IsaKernels& isa) noexcept;
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a, const IsaKernels& isa) noexcept;
void adamw(const Exec& exec, const AdamWArgs& a, const IsaKernels& isa) noexcept;
void sgd(const Exec& exec, const SgdArgs& a, const IsaKernels& isa) noexcept;
void sum_squares(const Exec& exec, const SumSquaresArgs& a, const IsaKernels& isa) noexcept;

}  // namespace qkv::kernels::cpu
