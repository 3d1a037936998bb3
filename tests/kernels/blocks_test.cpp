// Products and lookups with quantised weights: q8, q4 and the GGUF formats. Integer sums are exact and floats are added
// in one order, so all instruction sets, tile sizes, chunks and thread counts must give the same bits.
#include "base/blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/philox.h"
#include "core/panels.h"
#include "kernels/cpu/isa.h"
#include "ops/ops.h"
#include "support/block_weights.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

constexpr int64_t kWidth = 512, kOutputs = 150, kRows = 512;  // ten panels, the last partial

std::vector<Format> all_formats() {
  std::vector<Format> all;
  for (const Block own : {Block::q8, Block::q4}) {
    for (const int32_t group : {32, 64, 128, 256, 0}) all.emplace_back(own, group);
  }
  for (const Block gguf : {Block::q8_0, Block::q4_0, Block::q4_1, Block::q5_0, Block::q5_1, Block::q2_k, Block::q3_k,
                           Block::q4_k, Block::q5_k, Block::q6_k, Block::mxfp4}) {
    all.emplace_back(gguf);
  }
  return all;
}

std::string name_of_format(Format f) {
  std::string name = name_of(f.block);
  if (f.panels()) name += f.group > 0 ? "_" + std::to_string(f.group) : "_row";
  return name;
}

struct How {
  const Kernels* kernels = &kernels::ref::table();
  Precision precision = Precision::f32();
  int threads = 1;
  int64_t first = 0, rows = kRows;
};

Numbers multiply(const BlockWeight& weight, const Numbers& x, const How& how) {
  Pass pass({.kernels = how.kernels, .precision = how.precision, .threads = how.threads});
  const Param& w = weight.on(*how.kernels);
  const int64_t width = w.shape()[-1];
  const std::span<const double> some{x.data() + how.first * width, static_cast<size_t>(how.rows * width)};
  return to_host(ops::linear(pass.cx, pass.input(some, {how.rows, width}, how.precision.compute), w));
}

std::vector<const Kernels*> cpu_tables() {
  return {kernels::cpu::tables().begin(), kernels::cpu::tables().end()};
}
// All that have the definition's bits; ref computes in double.
std::vector<const Kernels*> exact_tables() {
  std::vector<const Kernels*> tables(kernels::all_tables().begin(), kernels::all_tables().end());
  std::erase(tables, &kernels::ref::table());
  return tables;
}

class EveryFormat : public ::testing::TestWithParam<Format> {};

TEST_P(EveryFormat, AgreesWithItsDefinitionInDouble) {
  constexpr int64_t kSome = 19;
  const BlockWeight w(GetParam(), {kOutputs, kWidth});
  const Numbers x = activations(kSome, kWidth);
  const Numbers right = multiply(w, x, {.precision = Precision::f64(), .rows = kSome});
  double power = 0;
  for (const double y : right) power += y * y;
  EXPECT_GT(power, 0);
  for (const Kernels* table : kernels::all_tables()) {
    for (const int64_t rows : {int64_t{1}, kSome}) {
      const Numbers part(right.begin(), right.begin() + rows * kOutputs);
      EXPECT_LE(nmse(multiply(w, x, {.kernels = table, .rows = rows}), part), 1e-12) << table->name;
      const double bf16 =
          nmse(multiply(w, x, {.kernels = table, .precision = Precision::bf16(), .threads = 2, .rows = rows}), part);
      EXPECT_LE(bf16, unit_roundoff(DType::bf16) * unit_roundoff(DType::bf16)) << table->name;
    }
  }
}

// The result differs from the product with the decoded weight only by the rounding of the activations.
TEST_P(EveryFormat, IsNearTheProductOfTheDecodedWeight) {
  constexpr int64_t kSome = 7;
  const BlockWeight w(GetParam(), {kOutputs, kWidth});
  const Numbers x = activations(kSome, kWidth);
  Pass pass({.precision = Precision::f64()});
  const Numbers numbers = to_host(ops::dequantize(pass.cx, w.param(), DType::f64));
  const Numbers right = to_host(ops::linear(pass.cx, pass.input({x.data(), kSome * kWidth}, {kSome, kWidth}),
                                            pass.param("plain", numbers, w.param().shape())));
  const double error = nmse(multiply(w, x, {.rows = kSome}), right);
  EXPECT_LE(error, GetParam().panels() && GetParam().group == 0 ? 1e-3 : 3e-4);
  EXPECT_GT(error, 1e-7);
}

// A fused epilogue gives the same bits as separate ops.
TEST_P(EveryFormat, FusedEpilogueEqualsSeparateOps) {
  constexpr int64_t kHidden = 256;  // a block of the widest format
  const BlockWeight up(GetParam(), {kHidden, kWidth}), gate(GetParam(), {kHidden, kWidth});
  const BlockWeight down(GetParam(), {kOutputs, kHidden});
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      for (const int64_t rows : {2, 21}) {
        for (const bool gated : {false, true}) {
          Pass pass({.kernels = table, .precision = precision, .threads = 2});
          Context& cx = pass.cx;
          const Tensor x = pass.input(activations(rows, kWidth), {rows, kWidth}, precision.compute);
          const Param& bias = pass.param("b", normals(8, kHidden), {kHidden});
          const Tensor stream = pass.input(normals(9, rows * kOutputs), {rows, kOutputs});
          const auto times = [&](const Tensor& t, const BlockWeight& w) {
            return ops::linear(cx, t, w.on(*table), {.bias = &bias});
          };
          const Tensor h = gated ? ops::gated(cx, times(x, gate), times(x, up), ops::gate::swiglu)
                                 : ops::activation(cx, times(x, up), ops::act::silu);
          const Tensor right = ops::add(cx, stream, ops::linear(cx, h, down.on(*table), {.out = cx.precision.exact}));
          const Tensor got = ops::feed_forward(cx, x,
                                               {.up = {&up.on(*table), &bias},
                                                .gate = gated ? ops::Affine{&gate.on(*table), &bias} : ops::Affine{},
                                                .down = {&down.on(*table)},
                                                .form = ops::gate::swiglu,
                                                .residual = {stream, true}});
          ASSERT_EQ(to_host(got), to_host(right)) << table->name << ", " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(EveryFormat, HasTheSameBitsEverywhere) {
  const BlockWeight w(GetParam(), {kOutputs, kWidth});
  const Numbers x = activations(kRows, kWidth);
  const Numbers all = multiply(w, x, {.kernels = &kernels::best_table(), .threads = 2});
  const auto expect_rows = [&](const How& how) {
    const Numbers part(all.begin() + how.first * kOutputs, all.begin() + (how.first + how.rows) * kOutputs);
    EXPECT_EQ(multiply(w, x, how), part) << how.kernels->name << ", " << how.rows << " rows from " << how.first << ", "
                                         << how.threads << " threads";
  };
  for (const Kernels* table : exact_tables()) {
    expect_rows({.kernels = table, .threads = 1});
    for (const int64_t rows : {1, 2, 3, 5, 15, 16, 17, 32}) {
      expect_rows({.kernels = table, .threads = 2, .rows = rows});
      expect_rows({.kernels = table, .threads = 1, .first = 101, .rows = rows});
    }
    expect_rows({.kernels = table, .threads = 3, .first = 17, .rows = 400});
  }
}

// Widths that end inside a tile of 64 columns if the format allows it, before and after column 512; three panels, the
// last partial; row counts below and above the threshold for tiles, and partial tiles.
TEST_P(EveryFormat, HasTheSameBitsForEveryRowCountAndRaggedShapes) {
  constexpr int64_t kSome = 65, kFew = 37;
  const Format format = GetParam();
  std::vector<int64_t> widths{512 + std::max<int64_t>(format.panels() ? format.group : format.block_elements(), 32)};
  if (format.panels() && format.group == 0) widths = {96, 1120};
  for (const int64_t width : widths) {
    const BlockWeight w(format, {kFew, width});
    const Numbers x = activations(kSome, width);
    const Numbers all = multiply(w, x, {.kernels = cpu_tables().front(), .rows = kSome});
    for (const Kernels* table : exact_tables()) {
      const auto expect_rows = [&](int64_t first, int64_t rows, int threads) {
        const Numbers part(all.begin() + first * kFew, all.begin() + (first + rows) * kFew);
        EXPECT_EQ(multiply(w, x, {.kernels = table, .threads = threads, .first = first, .rows = rows}), part)
            << table->name << ", " << width << " wide, " << rows << " rows from " << first;
      };
      for (int64_t rows = 1; rows <= 40; ++rows) expect_rows(rows % 26, rows, 1);
      expect_rows(0, kSome, 1);
      expect_rows(1, kSome - 1, 3);  // threads get rows; tiles start at any of them
    }
  }
}

TEST_P(EveryFormat, GroupsUseTheirOwnWeightAndBias) {
  const BlockWeight w(GetParam(), {3, 20, kWidth});
  const Numbers x = activations(9, kWidth), b = normals(3, 3 * 20);
  for (const Kernels* table : kernels::all_tables()) {
    Pass pass({.kernels = table, .threads = 2});
    const Tensor in = pass.input(x, {9, kWidth});
    const Param& bias = pass.param("b", b, {3, 20});
    const auto groups = ops::RowGroups::of_sizes(pass.cx, std::vector<int32_t>{5, 0, 4});
    const Numbers got = to_host(ops::linear(pass.cx, in, w.on(*table), {.bias = &bias, .groups = groups}));
    Numbers right;
    for (const auto& [e, first, rows] : {std::tuple{0, 0, 5}, std::tuple{2, 5, 4}}) {
      const Tensor part = w.on(*table).master().slice(0, e, 1).view({20, kWidth});
      const Param one("one", part.device(), part.format(), part.shape(), {.in_place = part.data()});
      const Param& one_bias = pass.param("b", {b.data() + e * 20, 20}, {20});
      const Numbers y = to_host(ops::linear(pass.cx, in.slice(0, first, rows), one, {.bias = &one_bias}));
      right.insert(right.end(), y.begin(), y.end());
    }
    EXPECT_EQ(got, right) << table->name;
  }
}

// One expert has more rows than a product of few rows takes at once.
TEST_P(EveryFormat, GroupsMayDifferMuchInSize) {
  constexpr int64_t kExperts = 8, kEach = 20;
  const std::vector<int32_t> sizes{3, 0, 41, 0, 0, 1, 0, 12};
  const BlockWeight w(GetParam(), {kExperts, kEach, kWidth});
  const int64_t rows = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const Numbers x = activations(rows, kWidth);
  const auto by = [&](const Kernels& table) {
    Pass pass({.kernels = &table, .threads = 2});
    const auto groups = ops::RowGroups::of_sizes(pass.cx, sizes);
    return to_host(ops::linear(pass.cx, pass.input(x, {rows, kWidth}), w.on(table), {.groups = groups}));
  };
  const Numbers right = by(*cpu_tables().front());
  for (const Kernels* table : exact_tables()) EXPECT_EQ(by(*table), right) << table->name;
}

TEST(Blocks, ProductsOfOneInputAreTheSameAloneAndTogether) {
  const Format wide(Block::q4_k), half(Block::q6_k), narrow(Block::q8_0), panels(Block::q8, 32);
  for (const auto& formats : {std::array{wide, wide, half}, {half, narrow, narrow}, {panels, panels, panels}}) {
    std::vector<BlockWeight> weights;
    for (size_t i = 0; i < formats.size(); ++i)
      weights.emplace_back(formats[i], Shape{40 + 16 * static_cast<int64_t>(i), kWidth});
    for (const Kernels* table : kernels::all_tables()) {
      for (const int64_t rows : {1, 9, 33, 70}) {
        Pass pass({.kernels = table, .threads = 2});
        const Tensor x = pass.input(activations(rows, kWidth), {rows, kWidth});
        const Param& bias = pass.param("b", normals(8, 56), {56});
        std::vector<ops::Affine> all;
        for (const BlockWeight& w : weights) all.push_back({&w.on(*table), all.size() == 1 ? &bias : nullptr});
        const std::vector<Tensor> together = ops::linear_set(pass.cx, x, all);
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(to_host(together[i]), to_host(ops::linear(pass.cx, x, *all[i].weight, {.bias = all[i].bias})))
              << table->name << ", " << rows << " rows, product " << i;
        }
      }
    }
  }
}

TEST_P(EveryFormat, LooksUpRowsExactly) {
  const BlockWeight w(GetParam(), {kOutputs, kWidth});
  Pass plain;
  const Numbers table_numbers = to_host(ops::dequantize(plain.cx, w.param(), DType::f32));
  const std::vector<int32_t> ids{149, 0, 17, 17, 16};
  for (const Kernels* table : kernels::all_tables()) {
    Pass pass({.kernels = table, .threads = 2});
    const Tensor y = ops::embedding(pass.cx, {{pass.indices(ids, {5}), &w.on(*table), 2.0}});
    const Numbers got = to_host(y);
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t row = static_cast<size_t>(ids[i / kWidth]);
      ASSERT_EQ(got[i], 2 * table_numbers[row * kWidth + i % kWidth]) << table->name << " " << i;
    }
  }
}

TEST_P(EveryFormat, NanAndInfinityStayInTheirRow) {
  const BlockWeight w(GetParam(), {20, kWidth});
  Numbers x = activations(3, kWidth);
  x[kWidth + 40] = std::numeric_limits<double>::infinity();
  x[kWidth + 300] = std::numeric_limits<double>::quiet_NaN();
  for (const Kernels* table : kernels::all_tables()) {
    const Numbers y = multiply(w, x, {.kernels = table, .rows = 3});
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 1) << table->name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, EveryFormat, ::testing::ValuesIn(all_formats()),
                         [](const auto& format) { return name_of_format(format.param); });

TEST(IntIsaKernels, GoWithTheirInstructionSet) {
  using namespace kernels::cpu;
  for (const IsaKernels* isa : usable_isas()) {
    const std::string name = isa->name, ints = int_isa_kernels(*isa).name;
    EXPECT_TRUE(name.starts_with("avx512") ? ints == "avx512vnni" || ints == "avx2" : ints == name)
        << name << " has " << ints;
  }
}

// More rows than fit the cache are processed in pieces.
TEST(ManyRows, HaveTheBitsOfFewer) {
  constexpr int64_t kWide = 4096, kMany = 260, kFew = 20;
  const BlockWeight w(Format(Block::q8, 256), {kFew, kWide});
  const Numbers x = activations(kMany, kWide);
  for (const Kernels* table : cpu_tables()) {
    Numbers parts;
    for (int64_t first = 0; first < kMany; first += 100) {
      const Numbers part =
          multiply(w, x, {.kernels = table, .first = first, .rows = std::min<int64_t>(100, kMany - first)});
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(multiply(w, x, {.kernels = table, .rows = kMany}), parts) << table->name;
  }
}

// --- q8 and q4 -------------------------------------------------------------------------------------------------------

TEST(Panels, HoldAMatrixToHalfAStep) {
  for (const Format format : all_formats()) {
    if (!format.panels()) continue;
    const Numbers x = normals(11, 37 * kWidth);
    Pass pass;
    Param w("w", cpu_device(), format, {37, kWidth});
    ops::quantize(pass.cx, w, pass.input(x, {37, kWidth}));
    const Numbers y = to_host(ops::dequantize(pass.cx, w, DType::f32));
    const size_t group = format.group > 0 ? static_cast<size_t>(format.group) : kWidth;
    const bool nibbles = format.block == Block::q4;
    for (size_t first = 0; first < x.size(); first += group) {
      double highest = 0;
      for (size_t i = first; i < first + group; ++i) highest = std::max(highest, std::abs(x[i]));
      // A bf16 scale is off by 2^-8 at most; the value opposite to q4's -8 is cut at 7.
      const double step = highest / (nibbles ? 8 : 127) * (1 + 0x1p-7);
      for (size_t i = first; i < first + group; ++i) {
        ASSERT_LE(std::abs(x[i] - y[i]), (nibbles ? 1.05 : 0.5) * step) << format << " " << i;
      }
    }
    EXPECT_LE(nmse(y, x), nibbles ? 2e-2 : 1e-4) << format;
  }
}

TEST(Panels, HaveTheDocumentedLayout) {
  // Row r, column k holds r - 10 at k = 0 and k = 5, else 0; the largest of a row sets its scale.
  constexpr int64_t kSmall = 64;
  Numbers x(20 * kSmall, 0.0);
  for (size_t r = 0; r < 20; ++r) x[r * kSmall] = x[r * kSmall + 5] = static_cast<double>(r) - 10;
  Pass pass;
  Param q8("w", cpu_device(), Format(Block::q8, 32), {20, kSmall});
  Param q4("w", cpu_device(), Format(Block::q4, 32), {20, kSmall});
  for (Param* w : {&q8, &q4}) ops::quantize(pass.cx, *w, pass.input(x, {20, kSmall}));
  EXPECT_EQ(q8.format().bytes_for(q8.shape()), 2 * (64 + 16 * 64));
  EXPECT_EQ(q4.format().bytes_for(q4.shape()), 2 * (64 + 8 * 64));

  const auto* bytes = q8.master().as<uint8_t>();
  EXPECT_EQ(bytes[64 + 4 * 2], 128 - 127);                             // row 2 is -8
  EXPECT_EQ(bytes[64 + 4 * 12], 128 + 127);                            // row 12 is 2
  EXPECT_EQ(bytes[64 + 64 + 4 * 12 + 1], 128 + 127);                   // column 5: the second line
  EXPECT_EQ(bytes[64 + 64 + 4 * 12 + 2], 128);                         // column 6
  EXPECT_EQ(bytes[64 + 16 * 64 + 64 + 4 * 1], 128 + 127);              // row 17: the second panel
  EXPECT_EQ(to_float(q8.master().as<Bf16>()[2 * 12]), 129.0F / 8192);  // 2 / 127 = 129.008 / 8192
  EXPECT_EQ(q8.master().as<Bf16>()[2 * 12 + 1].bits, 0);               // columns 32 to 63 are zero

  const auto* halves = q4.master().as<uint8_t>();
  EXPECT_EQ(halves[64 + 4 * 12] & 15, 0);      // -8 times a negative scale
  EXPECT_EQ(halves[64 + 4 * 12 + 1] >> 4, 0);  // column 5 is the upper half of byte 1
  EXPECT_EQ(halves[64 + 4 * 12 + 1] & 15, 8);  // column 1
  EXPECT_EQ(to_float(q4.master().as<Bf16>()[2 * 12]), -0.25F);
}

TEST(Panels, KeepZeroAndTinyBlocksZero) {
  for (const Block block : {Block::q8, Block::q4}) {
    Numbers x(16 * 64, 0.0);
    for (size_t i = 0; i < 16; ++i) x[i * 64] = 1e-35;
    Pass pass;
    Param w("w", cpu_device(), Format(block, 32), {16, 64});
    ops::quantize(pass.cx, w, pass.input(x, {16, 64}));
    for (const double y : to_host(ops::dequantize(pass.cx, w, DType::f32))) EXPECT_EQ(y, 0);
  }
}

}  // namespace
}  // namespace qkv::test
