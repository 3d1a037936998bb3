// The activations and gates of known models.
#pragma once

#include "core/formulas.h"

namespace qkv::ops {

namespace act {
inline constexpr Activation identity{Activation::Kind::identity};
inline constexpr Activation relu{Activation::Kind::relu};
inline constexpr Activation relu_squared{Activation::Kind::relu_squared};  // Nemotron
inline constexpr Activation gelu_erf{Activation::Kind::gelu_erf};
inline constexpr Activation gelu_tanh{Activation::Kind::gelu_tanh};
inline constexpr Activation silu{Activation::Kind::silu};
inline constexpr Activation quick_gelu{Activation::Kind::silu, 1.702F};
inline constexpr Activation tanh{Activation::Kind::tanh};
constexpr Activation softcap(float cap) {
  return {Activation::Kind::tanh, cap};
}
}  // namespace act

namespace gate {
inline constexpr Gating swiglu{act::silu};
inline constexpr Gating geglu_erf{act::gelu_erf};
inline constexpr Gating geglu_tanh{act::gelu_tanh};
inline constexpr Gating clamped_swiglu{act::quick_gelu, 7.0F, 1.0F};  // gpt-oss
}  // namespace gate

}  // namespace qkv::ops
