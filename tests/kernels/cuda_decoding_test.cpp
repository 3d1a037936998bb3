// Kernels of the GPU that only decoding has, against the ones they stand for. Where there is no GPU they are skipped.
#ifdef QKV_WITH_CUDA
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
  std::vector<int32_t> cached, rows;  // of each text: keys of earlier passes, rows of this one
  int64_t heads, kv_heads, width, value_width, pairs, first = 0;
  bool interleaved = false;
  int64_t window = 0;
};

// Rotary, both writes to the cache and attention: all at once, and one after the other.
TEST_F(Decoding, AttendsToFreshHeadsAsSeparateKernelsDo) {
  for (const Heads& h : {
           Heads{"one token", {100}, {1}, 32, 4, 64, 64, 32},
           Heads{"the first token", {0}, {1}, 32, 4, 64, 64, 32},
           Heads{"where a block begins", {64, 256, 63, 255}, {1, 1, 1, 1}, 8, 2, 64, 64, 32},
           Heads{"many keys", {1500, 700, 3}, {1, 1, 1}, 8, 2, 128, 128, 64},
           Heads{"drafts over blocks", {62, 254, 510, 9}, {5, 4, 3, 1}, 8, 8, 64, 64, 32},
           Heads{"more heads than a tile", {300, 5}, {1, 1}, 24, 2, 128, 128, 64},
           Heads{"a window", {900, 40}, {2, 1}, 8, 4, 64, 64, 32, 0, false, 100},
           Heads{"values of another width", {40}, {1}, 4, 4, 128, 64, 64},
           Heads{"part of a head", {40, 7}, {2, 3}, 4, 4, 80, 64, 16},
           Heads{"from a column", {40, 7}, {2, 3}, 4, 2, 96, 96, 32, 24},
           Heads{"interleaved", {40, 7}, {2, 1}, 6, 3, 64, 64, 32, 0, true},
           Heads{"odd pairs", {20}, {3}, 4, 4, 24, 24, 12},
           Heads{"many rows", {10, 200}, {40, 50}, 8, 2, 64, 64, 32},
       }) {
    const auto run = [&](bool at_once) {
      Pass pass({.kernels = &kernels::cuda::table()});
      const auto made = [&](uint64_t seed, const Shape& shape, DType dtype = DType::bf16) {
        return pass.input(normals(seed, shape.count()), shape, dtype);
      };
      constexpr int64_t kPage = 16, kPositions = 2048;
      std::vector<int32_t> positions, slots, segments, table, kv_map;
      int64_t most = 1, pages = 0, longest = 0;
      for (size_t n = 0; n < h.rows.size(); ++n) most = std::max<int64_t>(most, h.cached[n] + h.rows[n]);
      const int64_t columns = (most + kPage - 1) / kPage;
      for (size_t n = 0; n < h.rows.size(); ++n) {
        const auto text = static_cast<int32_t>(n), first = static_cast<int32_t>(positions.size());
        segments.insert(segments.end(), {text, first, h.rows[n], 0, h.cached[n] + h.rows[n], h.cached[n]});
        for (int64_t c = 0; c < columns; ++c) table.push_back(static_cast<int32_t>(pages + columns - 1 - c));
        for (int32_t r = 0; r < h.rows[n]; ++r) {
          const int64_t key = h.cached[n] + r;
          positions.push_back(static_cast<int32_t>(key));
          slots.push_back(static_cast<int32_t>((pages + columns - 1 - key / kPage) * kPage + key % kPage));
        }
        pages += columns;
        longest = std::max<int64_t>(longest, h.cached[n] + h.rows[n]);
      }
      for (int64_t head = 0; head < h.heads; ++head)
        kv_map.push_back(static_cast<int32_t>(head * h.kv_heads / h.heads));
      const auto rows = std::ssize(positions), texts = std::ssize(h.rows);
      const Tensor at = pass.indices(positions, {rows}), to = pass.indices(slots, {rows});
      const Tensor cos = made(1, {kPositions, h.pairs}, DType::f32), sin = made(2, {kPositions, h.pairs}, DType::f32);
      const Tensor q = made(3, {rows, h.heads, h.width}), k = made(4, {rows, h.kv_heads, h.width}),
                   v = made(5, {rows, h.kv_heads, h.value_width}), turned_q = made(6, q.shape()),
                   turned_k = made(7, k.shape()), cache_k = made(8, {pages * kPage, h.kv_heads, h.width}),
                   cache_v = made(9, {pages * kPage, h.kv_heads, h.value_width}),
                   z = made(10, {rows, h.heads, h.value_width}), lse = made(11, {rows, h.heads}, DType::f32);
      const auto turn = [&](const Tensor& y, const Tensor& x) {
        return RotaryArgs{
            .y = y, .x = x, .cos = cos, .sin = sin, .positions = at, .first = h.first, .interleaved = h.interleaved};
      };
      const CachedAttentionArgs all{.heads = {.q = turn(turned_q, q),
                                              .k = turn(turned_k, k),
                                              .to_k = {.y = cache_k, .x = turned_k, .slots = to},
                                              .to_v = {.y = cache_v, .x = v, .slots = to}},
                                    .attention = {.in = {.q = turned_q,
                                                         .k = cache_k.view({pages, kPage, h.kv_heads, h.width}),
                                                         .v = cache_v.view({pages, kPage, h.kv_heads, h.value_width}),
                                                         .segments = pass.indices(segments, {texts, 6}),
                                                         .table = pass.indices(table, {texts, columns}),
                                                         .kv_map = pass.indices(kv_map, {h.heads}),
                                                         .scale = 0.1,
                                                         .causal = true,
                                                         .window = h.window,
                                                         .longest_keys = longest},
                                                  .z = z,
                                                  .lse = lse}};
      const Kernels& kernels = pass.cx.kernels;
      if (at_once) {
        kernels.cached_attention(pass.cx.exec, all);
      } else {
        kernels.rotary(pass.cx.exec, all.heads.q);
        kernels.rotary(pass.cx.exec, all.heads.k);
        kernels.scatter_rows(pass.cx.exec, all.heads.to_k);
        kernels.scatter_rows(pass.cx.exec, all.heads.to_v);
        kernels.attention(pass.cx.exec, all.attention);
      }
      return std::vector<Numbers>{to_host(z), to_host(lse), to_host(cache_k), to_host(cache_v)};
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
#endif
