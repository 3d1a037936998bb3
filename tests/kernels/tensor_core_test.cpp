// The software tensor core against steps recorded on a Hopper GPU; and, where there is one, products of the table `cuda`
// against its chain, bit for bit.
#include "support/tensor_core.h"

#include <gtest/gtest.h>

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
  constexpr size_t kTiles = 512, kRows = 16, kColumns = 8, kDepth = kTensorCoreStep;
  const std::string all = read_file(file, 1 << 24);
  std::string_view bytes = all;
  for (int range = 0; range < 3; ++range) {
    const auto a = take<Bf16>(bytes, kTiles * kRows * kDepth), b = take<Bf16>(bytes, kTiles * kColumns * kDepth);
    const auto c = take<float>(bytes, kTiles * kRows * kColumns), d = take<float>(bytes, kTiles * kRows * kColumns);
    int64_t wrong = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      const size_t tile = i / (kRows * kColumns), row = i / kColumns % kRows, column = i % kColumns;
      const std::span<const Bf16, kDepth> x(a.data() + (tile * kRows + row) * kDepth, kDepth),
          y(b.data() + (tile * kColumns + column) * kDepth, kDepth);
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

#ifdef QKV_WITH_CUDA
TEST(TensorCore, ProductsOnTheGpuAreItsChain) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  for (const int64_t inner : {16, 64, 100, 2048}) {
    constexpr int64_t kRows = 37, kOutputs = 70;
    Pass pass({.kernels = &kernels::cuda::table(), .precision = Precision::bf16()});
    const Numbers x = normals(1, kRows * inner), w = normals(2, kOutputs * inner);
    const Tensor y = pass.zeros({kRows, kOutputs}, DType::f32);
    pass.cx.kernels.linear(
        pass.cx.exec,
        {.y = y, .x = pass.input(x, {kRows, inner}, DType::bf16), .w = pass.input(w, {kOutputs, inner}, DType::bf16)});
    const Numbers got = to_host(y);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t o = 0; o < kOutputs; ++o) {
        std::vector<Bf16> a, b;
        for (int64_t k = 0; k < inner; ++k) {
          a.push_back(to_bf16(static_cast<float>(x[static_cast<size_t>(r * inner + k)])));
          b.push_back(to_bf16(static_cast<float>(w[static_cast<size_t>(o * inner + k)])));
        }
        ASSERT_EQ(got[static_cast<size_t>(r * kOutputs + o)], static_cast<double>(tensor_core_dot(a, b)))
            << inner << " row " << r << " output " << o;
      }
    }
  }
}
#endif

}  // namespace
}  // namespace qkv::test
