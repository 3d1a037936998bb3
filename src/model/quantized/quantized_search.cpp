// src/model/quantized/quantized_search.cpp
//
//   s = e / (-8 - t / 4),  e the number of a group that is furthest from 0,  t in -8 .. 8
//   q = x / s rounded to even, in -8 .. 7;  the s with the least sum (x - s q)^2 is taken
//
// t = 0 is what ops::quantize does. A larger s clips nothing; a smaller s clips the largest values and makes the others
// finer: 11 to 16 % less squared error on normal numbers in groups of 32 to 256 (docs/quantization.md).
#include "model/quantized/quantized_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/thread_pool.h"
#include "core/panels.h"

namespace qkv {
namespace {

constexpr int kSteps = 8;  // to either side

// To even, as the addition of 1.5 2^23 rounds it.
float rounded(float x, float inverse) {
  constexpr float kWhole = 0x1.8p23F;
  return (std::clamp(x * inverse, -8.0F, 7.0F) + kWhole) - kWhole;
}

float square_error(std::span<const float> x, float step) {
  constexpr size_t kLanes = 16;  // groups are multiples of it
  const float inverse = 1 / step;
  float sums[kLanes] = {};
  for (size_t i = 0; i < x.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float lost = x[i + lane] - step * rounded(x[i + lane], inverse);
      sums[lane] += lost * lost;
    }
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0F);
}

Bf16 best_scale(std::span<const float> x) {
  const float extreme = *std::ranges::max_element(x, {}, [](float v) { return std::abs(v); });
  Bf16 best = to_bf16(extreme / -8);
  float least = square_error(x, to_float(best));
  for (int t = -kSteps; t <= kSteps; ++t) {
    const Bf16 scale = to_bf16(extreme / (-8 - static_cast<float>(t) / 4));
    const float error = square_error(x, to_float(scale));
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

void put_group(const PanelLayout& layout, std::byte* panel, int64_t row, int64_t g, std::span<const float> x) {
  auto& stored = *reinterpret_cast<Bf16*>(panel + layout.scale_at(g, row));
  if (to_float(stored) == 0) return;  // all zeros
  stored = best_scale(x);
  const float inverse = 1 / to_float(stored);
  for (int64_t i = 0; i < layout.group(); ++i) {
    const int64_t k = g * layout.group() + i;
    const auto q = static_cast<std::byte>(static_cast<int>(rounded(x[static_cast<size_t>(i)], inverse)) + 8);
    std::byte& at = panel[layout.value_at(k, row)];
    at = layout.upper_half(k) ? (at & std::byte{0x0f}) | q << 4 : (at & std::byte{0xf0}) | q;
  }
}

}  // namespace

void search_scales(const Exec& exec, const Tensor& panels, std::span<const float> x) {
  QKV_ASSERT(
      panels.format().block == Block::q4 && panels.rank() == 2 && static_cast<int64_t>(x.size()) == panels.count(),
      "scales of ", panels, " are searched with ", x.size(), " numbers");
  const PanelLayout layout(panels.format(), panels.cols());
  exec.pool->run((panels.dim(0) + kPanelRows - 1) / kPanelRows, [&](int64_t p, int) {
    std::byte* panel = panels.data() + p * layout.bytes();
    for (int64_t row = 0; row < std::min(kPanelRows, panels.dim(0) - p * kPanelRows); ++row) {
      for (int64_t g = 0; g < layout.groups(); ++g) {
        const int64_t first = (p * kPanelRows + row) * panels.cols() + g * layout.group();
        put_group(layout, panel, row, g, x.subspan(static_cast<size_t>(first), static_cast<size_t>(layout.group())));
      }
    }
  });
}

}  // namespace qkv
