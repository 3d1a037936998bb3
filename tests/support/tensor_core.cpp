#include "support/tensor_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace qkv::test {
namespace {

constexpr int kFractionBits = 25;

// value = significand 2^lsb; exponent: of the leading bit if it were normal.
struct Item {
  int64_t significand = 0;
  int lsb = 0, exponent = 0;
};

Item parts(Bf16 x) {
  const int e = (x.bits >> 7) & 255, m = x.bits & 127;
  const int sign = (x.bits >> 15) != 0 ? -1 : 1;
  if (e == 0) return {sign * int64_t{m}, -126 - 7, -126};
  return {sign * int64_t{m | 128}, e - 127 - 7, e - 127};
}

Item parts(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const int e = static_cast<int>((u >> 23) & 255U), m = static_cast<int>(u & 0x7fffffU);
  const int sign = (u >> 31) != 0 ? -1 : 1;
  if (e == 0) return {sign * int64_t{m}, -126 - 23, -126};
  return {sign * int64_t{m | 0x800000}, e - 127 - 23, e - 127};
}

// n 2^shift, cut off towards zero.
int64_t shifted(int64_t n, int shift) {
  if (shift >= 0) return n * (int64_t{1} << shift);
  if (shift <= -62) return 0;
  return n / (int64_t{1} << -shift);
}

}  // namespace

float tensor_core_step(float c, std::span<const Bf16, kTensorCoreStep> a, std::span<const Bf16, kTensorCoreStep> b) {
  std::array<Item, kTensorCoreStep + 1> items;
  size_t count = 0;
  for (size_t k = 0; k < kTensorCoreStep; ++k) {
    const Item x = parts(a[k]), y = parts(b[k]);
    if (x.significand * y.significand == 0) continue;
    items[count++] = {x.significand * y.significand, x.lsb + y.lsb, x.exponent + y.exponent};
  }
  if (c != 0) items[count++] = parts(c);
  int top = INT32_MIN;
  for (size_t i = 0; i < count; ++i) top = std::max(top, items[i].exponent);
  const int lsb = top - kFractionBits;
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += shifted(items[i].significand, items[i].lsb - lsb);
  if (count == 0 || total == 0) return 0;

  const auto magnitude = static_cast<uint64_t>(std::abs(total));
  const int bits = static_cast<int>(std::bit_width(magnitude)), exponent = bits - 1 + lsb;
  const int kept = exponent >= -126 ? 24 : std::max(24 - (-126 - exponent), 0);
  const int cut = std::max(bits - kept, 0);
  const double value = std::ldexp(static_cast<double>(magnitude >> cut << cut), lsb);
  return static_cast<float>(total < 0 ? -value : value);
}

float tensor_core_dot(std::span<const Bf16> a, std::span<const Bf16> b) {
  float sum = 0;
  for (size_t k = 0; k < a.size(); k += kTensorCoreStep) {
    std::array<Bf16, kTensorCoreStep> x{}, y{};
    const size_t count = std::min<size_t>(kTensorCoreStep, a.size() - k);
    std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(k), count, x.begin());
    std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(k), count, y.begin());
    sum = tensor_core_step(sum, x, y);
  }
  return sum;
}

}  // namespace qkv::test
