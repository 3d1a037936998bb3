// Attention on one row of scores against one block of keys.
#pragma once

#include "kernels/cpu/isa/exp.h"
#include "kernels/cpu/isa/isa_kernels.h"

namespace qkv::kernels::cpu {
namespace {

// a > b ? a : b in one instruction; GCC emits two.
QKV_INLINE Lanes lanes_max(const Lanes& a, const Lanes& b) {
  return each(a, b, [](Register x, Register y) {
#if defined(__AVX512F__)
    return (Register)_mm512_maskz_max_ps(0xffff, (__m512)x, (__m512)y);
#elif defined(__AVX2__)
    return (Register)_mm256_max_ps((__m256)x, (__m256)y);
#else
    return x > y ? x : y;
#endif
  });
}

QKV_INLINE float highest_lane(const Lanes& v) {
  float all[kLanes];
  store(all, v);
  float highest = all[0];
  for (int i = 1; i < kLanes; ++i) highest = all[i] > highest ? all[i] : highest;
  return highest;
}

QKV_INLINE float exp_one(float x) {
  float all[kLanes];
  store(all, exp(splat(x)));
  return all[0];
}

// One step of the online softmax. Hidden keys are -inf in the scores and 0 in the result.
void softmax_step(SoftmaxStep& s) noexcept {
  const Lanes scale = splat(s.scale);
  Lanes top = splat(s.highest);
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    Lanes x = load(s.scores + j);
    for (int p = 0; p < kParts; ++p) x.part[p] *= scale.part[p];
    store(s.scores + j, x);
    top = lanes_max(top, x);
  }
  const float highest = highest_lane(top);
  constexpr float kNothing = -__builtin_inff();
  if (highest == kNothing) {  // all hidden, or NaN, which compares as not larger
    s.mass = 0;
    for (int64_t j = 0; j < kKeyBlock; ++j) {
      s.probs[j] = s.scores[j] == kNothing ? 0 : s.scores[j];
      s.mass += s.probs[j];
    }
    s.rescale = 1;
    s.total += s.mass;
    return;
  }
  s.rescale = s.highest == highest ? 1 : exp_one(s.highest - highest);
  s.highest = highest;
  const Lanes shift = splat(-highest);
  Lanes total = splat(0);
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    Lanes x = load(s.scores + j);
    for (int p = 0; p < kParts; ++p) x.part[p] += shift.part[p];
    const Lanes probs = exp(x);
    store(s.probs + j, probs);
    for (int p = 0; p < kParts; ++p) total.part[p] += probs.part[p];
  }
  s.mass = sum(total);
  s.total = s.total * s.rescale + s.mass;
}

BlockStats block_stats(const float* scores, const float* probs, float from) noexcept {
  constexpr float kNothing = -__builtin_inff();
  static const float kIndex[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Lanes mass_x = splat(0), distance = splat(0), top = splat(kNothing), away = load(kIndex);
  for (int i = 0; i < kParts; ++i) away.part[i] = splat_register(from) - away.part[i];
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    const Lanes x = load(scores + j), p = load(probs + j);
    top = lanes_max(top, x);
    for (int i = 0; i < kParts; ++i) {
      const Register seen = x.part[i] == splat_register(kNothing) ? Register{} : x.part[i];  // 0 * -inf would be NaN
      mass_x.part[i] = multiply_add(p.part[i], seen, mass_x.part[i]);
      distance.part[i] = multiply_add(p.part[i], away.part[i], distance.part[i]);
      away.part[i] -= splat_register(kLanes);
    }
  }
  return {sum(mass_x), sum(distance), highest_lane(top)};
}

// probs = exp(scores - lse),  ds = probs * (dp - delta); hidden keys are -inf in the scores.
void gradient_step(const GradientStep& g) noexcept {
  const Lanes scale = splat(g.scale), lse = splat(g.lse), delta = splat(g.delta);
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    Lanes x = load(g.scores + j), dp = load(g.dp + j);
    for (int p = 0; p < kParts; ++p) x.part[p] = x.part[p] * scale.part[p] - lse.part[p];
    const Lanes probs = exp(x);
    for (int p = 0; p < kParts; ++p) dp.part[p] = probs.part[p] * (dp.part[p] - delta.part[p]);
    store(g.probs + j, probs);
    store(g.ds + j, dp);
  }
}

void scale_row(float* y, int64_t count, float factor) noexcept {
  for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

// -0 becomes +0: whether a sum that underflowed is -0 depends on how many zeros were added after it.
void divide_row(float* y, int64_t count, float by) noexcept {
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] / by + 0.0F;
}

}  // namespace
}  // namespace qkv::kernels::cpu
