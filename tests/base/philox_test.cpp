#include "base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>

namespace qkv {
namespace {

// The known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds); checked by the compiler.
static_assert(philox({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

constexpr PhiloxKey kKey = fold({.seed = 7, .step = 3, .layer = 2, .site = 1});
static_assert(fold({}) == PhiloxKey{0x6627e8d5, 0xe169c58d});
static_assert(uniform01(0) == 0.0F && uniform01(0xffffffff) < 1.0F && uniform01(0x80000000) == 0.5F);

TEST(Philox, KnownAnswersAtRunTime) {
  volatile uint32_t pi = 0x243f6a88;  // keeps the compiler from knowing the answer
  EXPECT_EQ(philox({pi, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AnAddressIsACounterAndALane) {
  const uint64_t row = 0x1122334455667788, column = 0x99aabbccddeeff02;
  const uint64_t block = column / 4;
  const PhiloxCounter words = philox(
      {0x55667788, 0x11223344, static_cast<uint32_t>(block & 0xffffffff), static_cast<uint32_t>(block >> 32)}, kKey);
  EXPECT_EQ(random_u32(kKey, row, column), words[2]);
  EXPECT_EQ(random_u32(kKey, row, column + 1), words[3]);
  EXPECT_EQ(random_u32(kKey, row, column - 2), words[0]);
}

TEST(Philox, EveryAddressIsItsOwn) {
  std::set<uint64_t> seen;
  for (uint64_t row = 0; row < 64; ++row) {
    for (uint64_t column = 0; column < 64; column += 2) {
      seen.insert(uint64_t{random_u32(kKey, row, column)} << 32 | random_u32(kKey, row, column + 1));
    }
  }
  for (const uint64_t high : {uint64_t{1} << 32, uint64_t{1} << 63}) {
    seen.insert(uint64_t{random_u32(kKey, high, 0)} << 32 | random_u32(kKey, high, 1));
    seen.insert(uint64_t{random_u32(kKey, 0, high)} << 32 | random_u32(kKey, 0, high + 1));
  }
  EXPECT_EQ(seen.size(), 64U * 32U + 4U);
}

TEST(Philox, EveryPartOfTheKeyMakesAnotherStream) {
  const RngKey base{.seed = 1, .step = 2, .layer = 3, .site = 4};
  const uint64_t high = uint64_t{1} << 32;
  const RngKey keys[] = {base,
                         {.seed = 2, .step = 2, .layer = 3, .site = 4},
                         {.seed = 1 + high, .step = 2, .layer = 3, .site = 4},
                         {.seed = 1, .step = 3, .layer = 3, .site = 4},
                         {.seed = 1, .step = 2 + high, .layer = 3, .site = 4},
                         {.seed = 1, .step = 2, .layer = 4, .site = 4},
                         {.seed = 1, .step = 2, .layer = 3, .site = 5},
                         {.seed = 1, .step = 2, .layer = 4, .site = 3}};
  std::set<PhiloxKey> folded;
  for (const RngKey& key : keys) folded.insert(fold(key));
  EXPECT_EQ(folded.size(), std::size(keys));

  // Streams of neighbouring keys have half their bits in common, as streams of strangers have.
  for (const RngKey& key : keys) {
    if (fold(key) == fold(base)) continue;
    int same = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      same += 32 - std::popcount(random_u32(fold(base), 0, i) ^ random_u32(fold(key), 0, i));
    }
    EXPECT_NEAR(same, 16000, 6 * 89.4);  // sigma = sqrt(32000) / 2
  }
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};

template <class Draw>
Moments moments_of(const Draw& draw, uint64_t rows, uint64_t columns) {
  const auto n = static_cast<double>(rows * columns);
  const auto mean_of = [&](const auto& f) {
    double sum = 0;
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t j = 0; j < columns; ++j) sum += f(draw(i, j));
    }
    return sum / n;
  };
  Moments m;
  m.mean = mean_of([](double x) { return x; });
  m.variance = mean_of([&](double x) { return (x - m.mean) * (x - m.mean); });
  const double sigma = std::sqrt(m.variance);
  m.skew = mean_of([&](double x) { return std::pow((x - m.mean) / sigma, 3); });
  m.kurtosis = mean_of([&](double x) { return std::pow((x - m.mean) / sigma, 4); });
  return m;
}

// Tolerances are six standard errors at n = 2^20.
TEST(Philox, UniformHasTheMomentsOfUniform) {
  const Moments m =
      moments_of([](uint64_t i, uint64_t j) { return double{uniform01(random_u32(kKey, i, j))}; }, 1024, 1024);
  EXPECT_NEAR(m.mean, 0.5, 6 * 0.2887 / 1024);
  EXPECT_NEAR(m.variance, 1.0 / 12, 6 * 0.0745 / 1024);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
}

TEST(Philox, NormalHasTheMomentsOfNormal) {
  const Moments m = moments_of([](uint64_t i, uint64_t j) { return normal(kKey, i, j); }, 1024, 1024);
  EXPECT_NEAR(m.mean, 0.0, 6 * 1.0 / 1024);
  EXPECT_NEAR(m.variance, 1.0, 6 * std::sqrt(2.0) / 1024);
  EXPECT_NEAR(m.skew, 0.0, 6 * std::sqrt(6.0) / 1024);
  EXPECT_NEAR(m.kurtosis, 3.0, 6 * std::sqrt(24.0) / 1024);
}

TEST(Philox, NormalHasTheTailsOfNormal) {
  const uint64_t n = 1 << 20;
  int beyond[4] = {};
  double most = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const double x = std::abs(normal(kKey, i >> 8, i & 255));
    for (int k = 1; k < 4; ++k) beyond[k] += x > k ? 1 : 0;
    most = std::max(most, x);
  }
  for (int k = 1; k < 4; ++k) {
    const double p = std::erfc(k / std::sqrt(2.0));
    EXPECT_NEAR(beyond[k], static_cast<double>(n) * p, 6 * std::sqrt(static_cast<double>(n) * p)) << k << " sigma";
  }
  EXPECT_LT(most, 6.67);  // the largest a 32-bit word can make
  EXPECT_GT(most, 4.0);
}

TEST(Philox, NeighbouringNormalsAreUncorrelated) {
  const uint64_t n = 1 << 18;
  for (uint64_t lag = 1; lag <= 4; ++lag) {
    double sum = 0;
    for (uint64_t j = 0; j < n; ++j) sum += normal(kKey, 5, j) * normal(kKey, 5, j + lag);
    EXPECT_NEAR(sum / static_cast<double>(n), 0.0, 6.0 / 512) << "lag " << lag;
  }
}

}  // namespace
}  // namespace qkv
