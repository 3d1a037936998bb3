// Kernels of the GPU that only decoding has, against the ones they stand for. Where there is no GPU they are skipped.
#ifdef QKV_WITH_CUDA
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

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
        positions.push_back(r * 7 % kPositions);
        slots.push_back((r * 5 + 3) % kSlots);
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

// A norm of one row in a recording is left to the product that reads it, whatever comes between or beside.
TEST_F(Decoding, NormsHaveTheirBitsWhicheverKernelMakesThem) {
  constexpr int64_t kWidth = 2048, kInner = 1280;
  struct Case {
    const char* name;
    bool centred, between, in_place, paired;
  };
  for (const Case& c :
       {Case{"three products", false, false, false, false}, Case{"mean and bias", true, false, false, false},
        Case{"another kernel between", false, true, false, false},
        Case{"added to what is normed", false, false, true, false}, Case{"gate and up", false, false, false, true}}) {
    const auto run = [&](bool recorded, int64_t rows) {
      Pass pass({.kernels = &kernels::cuda::table(), .precision = Precision::bf16()});
      const auto made = [&](uint64_t seed, const Shape& shape, DType dtype) {
        return pass.input(normals(seed, shape.count()), shape, dtype);
      };
      const Tensor x = made(1, {rows, kWidth}, DType::f32), w = made(2, {kWidth}, DType::f32),
                   b = made(3, {kWidth}, DType::f32), y = made(4, {rows, kWidth}, DType::bf16),
                   mean = made(5, {rows}, DType::f32), r = made(6, {rows}, DType::f32),
                   aside = made(7, {rows, kWidth}, DType::bf16);
      std::vector<LinearArgs> products;
      const std::vector<int64_t> outputs = c.in_place ? std::vector<int64_t>{kWidth}
                                           : c.paired ? std::vector<int64_t>{kInner, kInner}
                                                      : std::vector<int64_t>{kInner, 264, 40};
      for (size_t i = 0; i < outputs.size(); ++i) {
        const Tensor to = c.in_place ? x : made(10 + i, {rows, outputs[i]}, DType::bf16);
        products.push_back({.y = to, .x = y, .w = made(20 + i, {outputs[i], kWidth}, DType::bf16)});
      }
      if (c.in_place) products[0].epilogue.residual = x;
      if (c.paired) products[1].epilogue = {.form = {.act = {.kind = Activation::Kind::silu}}, .gate = products[0].y};
      const auto all = [&] {
        const Kernels& table = pass.cx.kernels;
        if (c.centred) {
          table.layer_norm(pass.cx.exec, {.y = y, .mean = mean, .rstd = r, .x = x, .w = w, .b = b, .eps = 1e-5});
        } else {
          table.rms_norm(pass.cx.exec, {.y = y, .r = r, .x = x, .w = w, .eps = 1e-5});
        }
        if (c.between) table.copy(pass.cx.exec, {.y = aside, .x = y});
        table.linear_set(pass.cx.exec, products);
      };
      if (recorded) {
        Device& device = x.device();
        device.begin_recording();
        all();
        const std::unique_ptr<Recording> recording = device.end_recording();
        EXPECT_TRUE(recording && recording->replay()) << c.name;
        device.finish();
      } else {
        all();
      }
      std::vector<Numbers> found;  // of the first row
      for (const Tensor& t : {y, r, mean, aside}) found.push_back(to_host(t.slice(0, 0, 1)));
      for (const LinearArgs& one : products) found.push_back(to_host(one.y.slice(0, 0, 1)));
      return found;
    };
    const std::vector<Numbers> right = run(false, 1);
    EXPECT_TRUE(run(true, 1) == right) << c.name;
    const std::vector<Numbers> of_three = run(false, 3);
    for (size_t i = 4; i < right.size(); ++i) EXPECT_TRUE(of_three[i] == right[i]) << c.name << ", among three rows";
  }
}

}  // namespace cuda_decoding_test
}  // namespace qkv::test
#endif
