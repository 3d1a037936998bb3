// Kernels of the GPU that only decoding has, against the ones they stand for. Where there is no GPU they are skipped.
#include <gtest/gtest.h>

#include <cmath>

#include "support/pass.h"

namespace qkv::test {
namespace cuda_decoding_test {

class Decoding : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::cuda::available()) GTEST_SKIP() << "no GPU";
  }
};

struct Heads {
  const char* name;
  int64_t rows, heads, kv_heads, width, value_width, pairs, first;
  bool interleaved = false;
};

TEST_F(Decoding, TurnsAndCachesHeadsAsSeparateKernelsDo) {
  for (const Heads& h :
       {Heads{"one token", 1, 32, 4, 64, 64, 32, 0}, Heads{"some", 37, 8, 2, 128, 128, 64, 0},
        Heads{"part of a head", 5, 4, 4, 80, 64, 16, 0}, Heads{"from a column", 5, 4, 2, 96, 96, 32, 24},
        Heads{"interleaved", 9, 6, 3, 64, 64, 32, 0, true}, Heads{"odd pairs", 3, 4, 4, 24, 24, 12, 0}}) {
    const auto run = [&](bool at_once) {
      Pass pass({.kernels = &kernels::cuda::table()});
      const auto made = [&](uint64_t seed, const Shape& shape, DType dtype = DType::bf16) {
        return pass.input(normals(seed, shape.count()), shape, dtype);
      };
      constexpr int64_t kSlots = 64, kPositions = 50;
      std::vector<int32_t> positions, slots;
      for (int32_t r = 0; r < h.rows; ++r) {
        positions.push_back(static_cast<int32_t>(r * 7 % kPositions));
        slots.push_back(static_cast<int32_t>((r * 5 + 3) % kSlots));
      }
      const Tensor at = pass.indices(positions, {h.rows}), to = pass.indices(slots, {h.rows});
      const Tensor cos = made(1, {kPositions, h.pairs}, DType::f32), sin = made(2, {kPositions, h.pairs}, DType::f32);
      const Tensor q = made(3, {h.rows, h.heads, h.width}), k = made(4, {h.rows, h.kv_heads, h.width}),
                   v = made(5, {h.rows, h.kv_heads, h.value_width}), turned_q = made(6, q.shape()),
                   turned_k = made(7, k.shape()), cache_k = made(8, {kSlots, h.kv_heads, h.width}),
                   cache_v = made(9, {kSlots, h.kv_heads, h.value_width});
      const auto turn = [&](const Tensor& y, const Tensor& x) {
        return RotaryArgs{
            .y = y, .x = x, .cos = cos, .sin = sin, .positions = at, .first = h.first, .interleaved = h.interleaved};
      };
      const CacheHeadsArgs all{.q = turn(turned_q, q),
                               .k = turn(turned_k, k),
                               .to_k = {.y = cache_k, .x = turned_k, .slots = to},
                               .to_v = {.y = cache_v, .x = v, .slots = to}};
      const Kernels& table = pass.cx.kernels;
      if (at_once) {
        table.cache_heads(pass.cx.exec, all);
      } else {
        table.rotary(pass.cx.exec, all.q);
        table.rotary(pass.cx.exec, all.k);
        table.scatter_rows(pass.cx.exec, all.to_k);
        table.scatter_rows(pass.cx.exec, all.to_v);
      }
      return std::vector<Numbers>{to_host(turned_q), to_host(cache_k), to_host(cache_v)};
    };
    EXPECT_TRUE(run(true) == run(false)) << h.name;
  }
}

TEST_F(Decoding, FindsTheFirstHighestNumber) {
  Pass pass({.kernels = &kernels::cuda::table()});
  for (const int64_t width : {1, 7, 4096, 32000, 50257}) {
    std::vector<double> numbers = normals(1, 5 * width);
    const auto row = [&](int64_t r) { return numbers.begin() + r * width; };
    std::fill(row(1), row(2), -1.0);  // all the same: the first
    *(row(2) + width / 2) = *(row(2) + width - 1) = 100;
    *(row(3) + width / 3) = NAN;
    *(row(4) + width - 1) = -INFINITY;
    const Tensor x = pass.input(numbers, {5, width}, DType::f32), ids = pass.indices(std::vector<int32_t>(5, 0), {5});
    pass.cx.kernels.first_highest(pass.cx.exec, {.ids = ids, .x = x});
    std::vector<int32_t> found(5);
    ids.device().download(found.data(), ids.data(), 5 * size_of(DType::i32));
    const auto first = static_cast<int32_t>(std::max_element(row(0), row(1)) - row(0));
    EXPECT_EQ(found, (std::vector<int32_t>{first, 0, static_cast<int32_t>(width / 2), -1, -1})) << width;
  }
}

}  // namespace cuda_decoding_test
}  // namespace qkv::test
