// Products of bf16 against their stated order of additions, one output at a time: isa/tile_product.h,
// isa/pair_product.h. On a CPU without AMX its instructions are emulated, tests/support/amx_by_hand.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/half.h"
#include "base/random_fill.h"
#include "core/storage.h"
#include "kernels/cpu/isa.h"

namespace qkv::test {
namespace {

using kernels::cpu::FloatRow;
using kernels::cpu::IsaKernels;
using kernels::cpu::TileSide;
using Layout = TileSide::Layout;

// By name, not by address: a build need not have it.
bool is_amx(const IsaKernels* isa) {
  return std::string_view(isa->name) == "amx";
}

// Instruction sets that multiply pairs of bf16.
std::vector<const IsaKernels*> isas_with_products() {
  std::vector<const IsaKernels*> list;
  for (const IsaKernels* isa : kernels::cpu::usable_isas()) {
    if (isa->tile_product != nullptr) list.push_back(isa);
  }
  return list;
}

// A bf16 matrix [rows, inner] with the inner index contiguous or strided. Every row is padded with NaN, which must not
// be read.
struct Matrix {
  static constexpr int64_t kPadding = 5;
  int64_t rows, inner;
  Layout layout;
  std::vector<uint16_t> data;

  Matrix(int64_t r, int64_t k, Layout l, uint64_t seed) : rows(r), inner(k), layout(l) {
    std::vector<float> values(static_cast<size_t>(r * k));
    fill_normal({static_cast<uint32_t>(seed), 0}, 0, 1, values);
    data.assign(static_cast<size_t>(stride() * (layout == Layout::k_contiguous ? r : k)), to_bf16(std::nanf("")).bits);
    for (int64_t i = 0; i < r * k; ++i) data[at(i / k, i % k)] = to_bf16(values[static_cast<size_t>(i)]).bits;
  }
  int64_t stride() const { return (layout == Layout::k_contiguous ? inner : rows) + kPadding; }
  size_t at(int64_t r, int64_t k) const {
    return static_cast<size_t>(layout == Layout::k_contiguous ? r * stride() + k : k * stride() + r);
  }
  float operator()(int64_t r, int64_t k) const { return to_float(Bf16{data[at(r, k)]}); }
  TileSide side() const { return {data.data(), stride(), layout}; }
};

// The order of pair_product.h for one output: of every pair the second product is added first.
float by_pairs(const Matrix& a, int64_t m, const Matrix& b, int64_t n) {
  float sum = 0;
  for (int64_t k = 0; k < a.inner; k += 2) {
    if (k + 1 < a.inner) sum = std::fma(a(m, k + 1), b(n, k + 1), sum);
    sum = std::fma(a(m, k), b(n, k), sum);
  }
  return sum;
}

// The order of tile_product.h.
float by_tiles(const Matrix& a, int64_t m, const Matrix& b, int64_t n) {
  const int64_t inner = a.inner, stretch = inner <= 1024 ? inner : 512;
  float all = 0;
  for (int64_t first = 0; first < inner; first += stretch) {
    const int64_t count = std::min(stretch, inner - first), steps = (count + 31) / 32;
    float sum = 0;
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t step = n / 32 % 2 == 0 ? s : steps - 1 - s;
      float even = 0, odd = 0;
      for (int64_t k = step * 32; k < std::min(step * 32 + 32, count); ++k) {
        float& chain = k % 2 == 0 ? even : odd;
        chain = std::fma(a(m, first + k), b(n, first + k), chain);
      }
      sum += even + odd;
    }
    all = first == 0 ? sum : all + sum;
  }
  return all;
}

float in_order(const IsaKernels& isa, const Matrix& a, int64_t m, const Matrix& b, int64_t n) {
  return is_amx(&isa) ? by_tiles(a, m, b, n) : by_pairs(a, m, b, n);
}

struct Shape3 {
  int64_t rows, cols, inner;
};

class TileProducts : public ::testing::TestWithParam<const IsaKernels*> {
 protected:
  const IsaKernels& isa() const { return *GetParam(); }
  Storage scratch_{cpu_device(), DType::i8, kernels::cpu::kTileScratch};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TileProducts);  // if no instruction set has them

TEST_P(TileProducts, HaveTheStatedOrderForEveryLayout) {
  const Shape3 shapes[] = {{1, 1, 1},      {1, 70, 64},   {16, 32, 33},   {17, 33, 96},   {33, 65, 40},  {70, 40, 31},
                           {2, 130, 1024}, {5, 40, 1025}, {7, 300, 1100}, {520, 2, 1060}, {250, 3, 2100}};
  for (const Shape3& s : shapes) {
    for (const Layout a_layout : {Layout::k_contiguous, Layout::k_strided}) {
      for (const Layout b_layout : {Layout::k_contiguous, Layout::k_strided, Layout::packed}) {
        const Matrix a(s.rows, s.inner, a_layout, 1),
            b(s.cols, s.inner, b_layout == Layout::k_strided ? b_layout : Layout::k_contiguous, 2);
        const int64_t panels = (s.cols + 31) / 32, steps = (s.inner + 31) / 32;
        Storage packed(cpu_device(), DType::bf16, panels * steps * 1024);
        TileSide right = b.side();
        if (b_layout == Layout::packed && isa().pack_weight == nullptr) continue;
        if (b_layout == Layout::packed) {
          auto* to = reinterpret_cast<uint16_t*>(packed.data());
          isa().pack_weight({.to = to,
                             .from = {const_cast<uint16_t*>(b.data.data()), true},
                             .stride = b.stride(),
                             .rows = s.cols,
                             .inner = s.inner,
                             .end_panel = panels});
          right = {to, 0, Layout::packed};
        }
        std::vector<float> y(static_cast<size_t>(s.rows * s.cols), std::nanf(""));
        isa().tile_product({.a = a.side(),
                            .b = right,
                            .rows = s.rows,
                            .cols = s.cols,
                            .inner = s.inner,
                            .epilogue = {.y = {y.data(), s.cols}},
                            .scratch = scratch_.data()});
        for (int64_t i = 0; i < s.rows * s.cols; ++i) {
          ASSERT_EQ(y[static_cast<size_t>(i)], in_order(isa(), a, i / s.cols, b, i % s.cols))
              << s.rows << " x " << s.cols << " x " << s.inner << ", layouts " << static_cast<int>(a_layout) << " and "
              << static_cast<int>(b_layout) << ", at " << i / s.cols << ", " << i % s.cols;
        }
      }
    }
  }
}

// With a bias, added to the old values, rounded to bf16; nothing outside the columns is written.
TEST_P(TileProducts, RunTheEpilogueOnTheirColumnsOnly) {
  const Shape3 s{19, 45, 50};
  const Matrix a(s.rows, s.inner, Layout::k_contiguous, 3), b(s.cols, s.inner, Layout::k_contiguous, 4);
  const int64_t stride = s.cols + 3;
  std::vector<float> bias(static_cast<size_t>(s.cols));
  fill_normal({5, 0}, 0, 1, bias);
  for (const bool add : {false, true}) {
    std::vector<uint16_t> y(static_cast<size_t>(s.rows * stride), to_bf16(2.5F).bits);
    isa().tile_product({.a = a.side(),
                        .b = b.side(),
                        .rows = s.rows,
                        .cols = s.cols,
                        .inner = s.inner,
                        .epilogue = {.y = {y.data(), stride, true}, .bias = {bias.data()}, .add = add},
                        .scratch = scratch_.data()});
    for (int64_t i = 0; i < s.rows * stride; ++i) {
      const int64_t m = i / stride, n = i % stride;
      float wanted = 2.5F;
      if (n < s.cols) {
        wanted = in_order(isa(), a, m, b, n) + bias[static_cast<size_t>(n)];
        if (add) wanted += 2.5F;
      }
      ASSERT_EQ(y[static_cast<size_t>(i)], to_bf16(wanted).bits) << m << ", " << n;
    }
  }
}

TEST_P(TileProducts, WithoutInnerIndexAreZeroOrTheOldValues) {
  std::vector<float> y(3 * 4, 7.0F);
  const Matrix a(3, 1, Layout::k_contiguous, 1), b(4, 1, Layout::k_contiguous, 2);
  isa().tile_product({.a = a.side(),
                      .b = b.side(),
                      .rows = 3,
                      .cols = 4,
                      .epilogue = {.y = {y.data(), 4}, .add = true},
                      .scratch = scratch_.data()});
  EXPECT_EQ(y, std::vector<float>(12, 7.0F));
  isa().tile_product({.a = a.side(),
                      .b = b.side(),
                      .rows = 3,
                      .cols = 4,
                      .epilogue = {.y = {y.data(), 4}},
                      .scratch = scratch_.data()});
  EXPECT_EQ(y, std::vector<float>(12, 0.0F));
}

// f32 weights give the same tiles as their bf16 rounding.
TEST(PackedWeights, AreRoundedToBf16) {
  const auto all = isas_with_products();
  const auto packs = std::find_if(all.begin(), all.end(), is_amx);
  if (packs == all.end()) GTEST_SKIP() << "no AMX in this build, or no AVX-512 to emulate it";
  const int64_t rows = 37, inner = 70, panels = 2, values = panels * 3 * 1024;
  std::vector<float> master(static_cast<size_t>(rows * inner));
  fill_normal({6, 0}, 0, 1, master);
  std::vector<uint16_t> rounded;
  for (const float x : master) rounded.push_back(to_bf16(x).bits);
  Storage from_f32(cpu_device(), DType::bf16, values), from_bf16(cpu_device(), DType::bf16, values);
  for (const bool bf16 : {false, true}) {
    (*packs)->pack_weight({.to = reinterpret_cast<uint16_t*>((bf16 ? from_bf16 : from_f32).data()),
                           .from = {bf16 ? static_cast<void*>(rounded.data()) : master.data(), bf16},
                           .stride = inner,
                           .rows = rows,
                           .inner = inner,
                           .end_panel = panels});
  }
  const auto* tiles = reinterpret_cast<const uint16_t*>(from_f32.data());
  for (int64_t i = 0; i < values; ++i) {
    // [panel][step][tile][pair][column][2]
    const int64_t o = i / 3072 * 32 + i / 512 % 2 * 16 + i / 2 % 16, k = i / 1024 % 3 * 32 + i / 32 % 16 * 2 + i % 2;
    const uint16_t wanted = o < rows && k < inner ? rounded[static_cast<size_t>(o * inner + k)] : uint16_t{0};
    ASSERT_EQ(tiles[i], wanted) << o << ", " << k;
    ASSERT_EQ(reinterpret_cast<const uint16_t*>(from_bf16.data())[i], wanted) << o << ", " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(IsaKernels, TileProducts, ::testing::ValuesIn(isas_with_products()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace qkv::test
