#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/philox.h"

namespace qkv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value a bit pattern of a binary format means, by IEEE 754's formula.
double meaning_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits);
}

// The nearest of a pattern and its two neighbours, the even one where two are equally near.
uint16_t nearest_by_search(double x, uint16_t near, int exponent_bits, int mantissa_bits) {
  uint16_t best = near;
  double best_distance = std::abs(meaning_of(near, exponent_bits, mantissa_bits) - x);
  for (const int step : {-1, 1}) {
    const auto other = static_cast<uint16_t>(near + step);
    const double distance = std::abs(meaning_of(other, exponent_bits, mantissa_bits) - x);
    if (distance < best_distance || (distance == best_distance && other % 2 == 0)) {
      best = other;
      best_distance = distance;
    }
  }
  return best;
}

TEST(Bf16, EveryPatternMeansWhatIeeeSays) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double right = meaning_of(bits, 8, 7);
    const auto got = static_cast<double>(to_float(Bf16{static_cast<uint16_t>(bits)}));
    if (std::isnan(right)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(got, right) << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(right)) << bits;
    }
  }
}

TEST(Bf16, EveryPatternRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const Bf16 x{static_cast<uint16_t>(bits)};
    const Bf16 back = to_bf16(to_float(x));
    if (std::isnan(to_float(x))) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TEST(Bf16, TiesGoToEven) {
  EXPECT_EQ(to_float(to_bf16(1 + 0x1p-8F)), 1);            // between 1 and 1 + 2^-7: 1 is even
  EXPECT_EQ(to_float(to_bf16(1 + 0x3p-8F)), 1 + 0x1p-6F);  // between 1 + 2^-7 and 1 + 2^-6: the latter
  EXPECT_EQ(to_float(to_bf16(-1 - 0x1p-8F)), -1);
  EXPECT_EQ(to_float(to_bf16(1 + 0x1p-8F + 0x1p-23F)), 1 + 0x1p-7F);  // just past the tie
  EXPECT_EQ(to_float(to_bf16(257)), 256);
  EXPECT_EQ(to_float(to_bf16(259)), 260);
  EXPECT_EQ(to_float(to_bf16(0x1p-134F)), 0);          // half of the smallest subnormal, 2^-133
  EXPECT_EQ(to_float(to_bf16(0x3p-134F)), 0x1p-132F);  // one and a half of it
}

TEST(Bf16, OverflowIsInfinity) {
  EXPECT_EQ(to_float(to_bf16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(to_float(to_bf16(0x1.fep127F)), 0x1.fep127F);
  EXPECT_EQ(to_float(to_bf16(0x1.fefffep127F)), 0x1.fep127F);  // just below half way to 2^128
  EXPECT_EQ(to_float(to_bf16(0x1.ffp127F)), kInfinity);        // half way
  EXPECT_EQ(to_float(to_bf16(-kInfinity)), -kInfinity);
}

TEST(Bf16, ANanWithAPayloadOnlyInItsLowBitsStaysANan) {
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0xff800001U)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7fffffffU)))));
}

TEST(F16, EveryPatternMeansWhatIeeeSays) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double right = meaning_of(bits, 5, 10);
    const auto got = static_cast<double>(to_float(F16{static_cast<uint16_t>(bits)}));
    if (std::isnan(right)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(got, right) << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(right)) << bits;
    }
  }
}

TEST(F16, EveryPatternRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const F16 x{static_cast<uint16_t>(bits)};
    const F16 back = to_f16(to_float(x));
    if (std::isnan(to_float(x))) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
      ASSERT_EQ(back.bits & 0x8000U, bits & 0x8000U);
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TEST(F16, EdgesAreThoseOfIeee) {
  EXPECT_EQ(to_float(to_f16(65504)), 65504);
  EXPECT_EQ(to_float(to_f16(65519.99F)), 65504);
  EXPECT_EQ(to_float(to_f16(65520)), kInfinity);
  EXPECT_EQ(to_float(to_f16(-65520)), -kInfinity);
  EXPECT_EQ(to_float(to_f16(kInfinity)), kInfinity);
  EXPECT_EQ(to_f16(0x1p-24F).bits, 1);
  EXPECT_EQ(to_f16(0x1p-25F).bits, 0);           // a tie, 0 is even
  EXPECT_EQ(to_f16(0x1.000002p-25F).bits, 1);    // just past it
  EXPECT_EQ(to_f16(0x3p-25F).bits, 2);           // a tie between 1 and 2
  EXPECT_EQ(to_f16(0x1p-14F).bits, 0x0400);      // smallest normal
  EXPECT_EQ(to_f16(0x1.ff8p-15F).bits, 0x03ff);  // largest subnormal
  EXPECT_EQ(to_f16(0x1.ffcp-15F).bits, 0x0400);  // half way between the two
  EXPECT_EQ(to_f16(-0.0F).bits, 0x8000);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(F16, TiesGoToEven) {
  EXPECT_EQ(to_float(to_f16(2049)), 2048);
  EXPECT_EQ(to_float(to_f16(2051)), 2052);
  EXPECT_EQ(to_float(to_f16(-2051)), -2052);
  EXPECT_EQ(to_float(to_f16(1 + 0x1p-11F)), 1);
  EXPECT_EQ(to_float(to_f16(1 + 0x3p-11F)), 1 + 0x1p-9F);
}

// Floats of every exponent, and the exact half-way points among them.
TEST(Rounding, FindsTheNearestValueOfEachFormat) {
  const auto key = fold(RngKey{.seed = 7});
  for (uint64_t i = 0; i < 200'000; ++i) {
    uint32_t bits = random_u32(key, i, 0);
    if (i % 4 == 0) bits = (bits & 0xffff0000U) | 0x8000U;  // half way for bf16
    if (i % 4 == 1) bits = (bits & 0xffffe000U) | 0x1000U;  // half way for f16
    const auto x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    const auto wide = static_cast<double>(x);
    if (std::abs(x) < 0x1.fep127F) {
      const Bf16 rounded = to_bf16(x);
      ASSERT_EQ(rounded.bits, nearest_by_search(wide, rounded.bits, 8, 7)) << x;
    }
    const auto into_f16 =
        std::bit_cast<float>((bits & 0x807fffffU) | ((100U + static_cast<uint32_t>(i % 42)) << 23));  // 2^-27 to 2^14
    const F16 rounded = to_f16(into_f16);
    const double close = static_cast<double>(into_f16);
    if ((rounded.bits & 0x7fffU) != 0) {
      ASSERT_EQ(rounded.bits, nearest_by_search(close, rounded.bits, 5, 10)) << into_f16;
    } else {
      ASSERT_LE(std::abs(close), 0x1p-25);
    }
  }
}

}  // namespace
}  // namespace qkv
