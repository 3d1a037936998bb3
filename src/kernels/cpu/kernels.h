// Kernels of the cpu tables that have a form of their own; the others are the plain loops on every thread. Each is a
// template on the instruction set's forms, defined and instantiated for all of them in its .cpp.
#pragma once

#include "core/kernels.h"
#include "kernels/cpu/forms/forms.h"

namespace qkv::kernels::cpu {

template <const Forms& F>
void linear(const Exec& exec, const LinearArgs& a) noexcept;
template <const Forms& F>
void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept;

template <const Forms& F>
void attention(const Exec& exec, const AttentionArgs& a) noexcept;
template <const Forms& F>
void attention_backward(const Exec& exec, const AttentionBackwardArgs& a) noexcept;

// Instantiates a kernel for every instruction set of this build.
#if defined(__x86_64__)
#define QKV_FOR_ALL_FORMS(kernel, Args)                                        \
  template void kernel<plain_forms>(const Exec& exec, const Args& a) noexcept; \
  template void kernel<avx2_forms>(const Exec& exec, const Args& a) noexcept;  \
  template void kernel<avx512_forms>(const Exec& exec, const Args& a) noexcept;
#else
#define QKV_FOR_ALL_FORMS(kernel, Args) template void kernel<plain_forms>(const Exec& exec, const Args& a) noexcept;
#endif

}  // namespace qkv::kernels::cpu
