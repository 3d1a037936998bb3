#include "base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace qkv {
namespace {

PhiloxKey key_of(uint64_t seed) {
  return fold({.seed = seed});
}

TEST(Permutation, HitsEveryNumberOnce) {
  for (const uint64_t size :
       std::initializer_list<uint64_t>{1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100, 1000, 1024, 1025, 40'000}) {
    const Permutation shuffled(size, key_of(size));
    std::vector<int> hits(size);
    for (uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(shuffled(i), size);
      ++hits[shuffled(i)];
    }
    EXPECT_EQ(hits, std::vector<int>(size, 1)) << size;
  }
}

TEST(Permutation, LargeSizesStayInside) {
  for (const uint64_t size : {uint64_t{1} << 32, (uint64_t{1} << 40) + 1, (uint64_t{1} << 62) - 1}) {
    const Permutation shuffled(size, key_of(1));
    for (uint64_t i = 0; i < 100; ++i) {
      EXPECT_LT(shuffled(i), size);
      EXPECT_LT(shuffled(size - 1 - i), size);
      EXPECT_NE(shuffled(i), shuffled(size - 1 - i));
    }
  }
}

// Over many keys every number is equally likely at every place: Pearson's statistic has size - 1 degrees of freedom,
// and is beyond the bound by chance once in 10^6 places.
TEST(Permutation, EveryPlaceSeesEveryNumber) {
  constexpr int kKeys = 6000;
  for (const uint64_t size : std::initializer_list<uint64_t>{2, 3, 6, 10}) {
    std::vector<int> counts(size * size);
    for (uint64_t key = 0; key < kKeys; ++key) {
      const Permutation shuffled(size, key_of(key));
      for (uint64_t i = 0; i < size; ++i) ++counts[i * size + shuffled(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    for (uint64_t i = 0; i < size; ++i) {
      double statistic = 0;
      for (uint64_t j = 0; j < size; ++j) statistic += std::pow(counts[i * size + j] - expected, 2) / expected;
      EXPECT_LT(statistic, static_cast<double>(size) + 40) << "size " << size << ", place " << i;
    }
  }
}

// Neighbours do not stay neighbours: of n pairs about 2 are adjacent after a fair shuffle.
TEST(Permutation, NeighboursPart) {
  constexpr uint64_t kSize = 10'000;
  const Permutation shuffled(kSize, key_of(9));
  int together = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    const uint64_t a = shuffled(i), b = shuffled(i + 1);
    together += (a > b ? a - b : b - a) == 1;
  }
  EXPECT_LT(together, 15);
}

}  // namespace
}  // namespace qkv
