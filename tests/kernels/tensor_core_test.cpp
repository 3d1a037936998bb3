// The software tensor core against steps recorded on a Hopper GPU.
#include "support/tensor_core.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/file.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

template <class T>
std::vector<T> take(std::string_view& bytes, size_t count) {
  std::vector<T> out(count);
  std::memcpy(out.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
  return out;
}

// Three ranges of exponents, 512 tiles each: a [16, 16], b [8, 16], c and d = c + a b^T [16, 8].
TEST(TensorCore, StepsAreThoseOfHopper) {
  QKV_NEED_SHARED(file, "prototypes/cuda/steps.bin");
  constexpr size_t kTiles = 512, kTileRows = 16, kTileColumns = 8, kTileDepth = kTensorCoreStep;
  const std::string all = read_file(file, 1 << 24);
  std::string_view bytes = all;
  for (int range = 0; range < 3; ++range) {
    const auto a = take<Bf16>(bytes, kTiles * kTileRows * kTileDepth),
               b = take<Bf16>(bytes, kTiles * kTileColumns * kTileDepth);
    const auto c = take<float>(bytes, kTiles * kTileRows * kTileColumns),
               d = take<float>(bytes, kTiles * kTileRows * kTileColumns);
    int64_t wrong = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      const size_t tile = i / (kTileRows * kTileColumns), row = i / kTileColumns % kTileRows, column = i % kTileColumns;
      const std::span<const Bf16, kTileDepth> x(a.data() + (tile * kTileRows + row) * kTileDepth, kTileDepth),
          y(b.data() + (tile * kTileColumns + column) * kTileDepth, kTileDepth);
      wrong += std::bit_cast<uint32_t>(tensor_core_step(c[i], x, y)) != std::bit_cast<uint32_t>(d[i]) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << "of " << d.size() << " in range " << range;
  }
  EXPECT_TRUE(bytes.empty());
}

// By hand: 2^24 takes the place of all but 25 bits below it.
TEST(TensorCore, CutsOffTowardsZero) {
  std::array<Bf16, kTensorCoreStep> a{}, b{};
  b.fill(to_bf16(1));
  a[0] = to_bf16(0x1p24F);
  a[1] = to_bf16(0.75F);  // 2^24 + 0.75 in 25 fraction bits is 2^24 + 0.5, and in f32 2^24
  EXPECT_EQ(tensor_core_step(0, a, b), 0x1p24F);
  EXPECT_EQ(tensor_core_step(1.5F, a, b), 0x1p24F + 2);
  a[0] = to_bf16(-0x1p24F);
  EXPECT_EQ(tensor_core_step(0, a, b), -0x1p24F + 1) << "-(2^24) + 0.5 has one bit more";
  EXPECT_EQ(tensor_core_dot({}, {}), 0);
}

}  // namespace
}  // namespace qkv::test
