#include "base/random_fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace qkv {
namespace random_fill_test {

constexpr PhiloxKey kKey{0x12345678, 0x9abcdef0};

// The same words through the C library, in double.
TEST(FillNormal, IsTheNormalOfPhiloxToAFewUnitsInTheLastPlace) {
  std::vector<float> got(100'000);
  for (const uint64_t first : {uint64_t{0}, uint64_t{5}, (uint64_t{1} << 40) + 63}) {
    fill_normal(kKey, first, 1, got);
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double right = normal(kKey, 0, first + i);
      worst = std::max(worst, std::abs(double{got[i]} - right) / std::max(1.0, std::abs(right)));
    }
    EXPECT_LT(worst, 1e-6) << "from " << first;
  }
}

TEST(FillNormal, GivesTheSameBitsInAnyPieces) {
  std::vector<float> whole(1000), pieces(1000);
  fill_normal(kKey, 17, 0.02F, whole);
  for (size_t at = 0, piece = 1; at < pieces.size(); at += piece, piece = piece * 2 + 1) {
    const size_t size = std::min(piece, pieces.size() - at);
    fill_normal(kKey, 17 + at, 0.02F, std::span(pieces).subspan(at, size));
  }
  EXPECT_EQ(whole, pieces);
}

TEST(FillUniform, CoversItsIntervalEvenly) {
  constexpr size_t kCount = 1 << 20, kBins = 64;
  std::vector<float> got(kCount);
  fill_uniform(kKey, 3, 0.5F, got);
  std::vector<double> bins(kBins);
  for (const float x : got) {
    ASSERT_LE(std::abs(x), 0.5F);
    bins[std::min(kBins - 1, static_cast<size_t>((double{x} + 0.5) * kBins))] += 1;
  }
  double chi2 = 0;
  for (const double n : bins)
    chi2 += (n - double{kCount} / kBins) * (n - double{kCount} / kBins) / (double{kCount} / kBins);
  EXPECT_LT(chi2, 63 + 5 * std::sqrt(2 * 63.0));
}

}  // namespace random_fill_test
}  // namespace qkv
