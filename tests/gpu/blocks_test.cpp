// Weights in blocks on a GPU, in shapes that take the largest tiles: the CPU's bits.
#include <gtest/gtest.h>

#include "core/host_values.h"
#include "support/block_weights.h"

namespace qkv::test {
namespace cuda_blocks_test {

class CudaBlocks : public testing::TestWithParam<Format> {};

// Columns that end in the middle of what is read at once, rows of x and of weights that end inside a tile.
TEST_P(CudaBlocks, OfManyRowsHaveTheCpusBits) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  constexpr int64_t kRows = 1030, kOutputs = 790;
  const Format format = GetParam();
  const int64_t width = format.block_elements() == 256 ? 512 : 288;
  const BlockWeight w(format, {kOutputs, width});
  const Numbers x = activations(kRows, width);
  const auto by = [&](const Kernels& table) {
    Pass pass({.kernels = &table, .threads = 2});
    return host_floats(ops::linear(pass.cx, pass.input(x, {kRows, width}), w.on(table)));
  };
  const std::vector<float> right = by(kernels::best_table()), got = by(kernels::cuda::table());
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] == right[i] ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, CudaBlocks,
                         testing::Values(Format(Block::q8, 32), Format(Block::q4, 32), Format(Block::q8, 0),
                                         Format(Block::q8_0), Format(Block::q5_1), Format(Block::q4_k),
                                         Format(Block::q6_k)),
                         [](const auto& format) {
                           const Format f = format.param;
                           return std::string(name_of(f.block)) + (f.panels() && f.group == 0 ? "_row" : "");
                         });

}  // namespace cuda_blocks_test
}  // namespace qkv::test
