// Functions on sixteen lanes against double, for every instruction set this machine has. The errors measured here are
// stated in the comments of src/kernels/cpu/isa.
#include "kernels/cpu/isa/isa_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/random_fill.h"
#include "core/dtype.h"
#include "kernels/cpu/isa.h"

namespace qkv::test {
namespace isa_kernels_test {

using kernels::cpu::ActivationCall;
using kernels::cpu::ActivationKind;
using kernels::cpu::FloatRow;
using kernels::cpu::IsaKernels;
using kernels::cpu::usable_isas;
using Values = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every `stride`-th float between two of one sign, and its negative.
Values sweep(float from, float to, uint32_t stride) {
  Values x;
  for (uint32_t bits = std::bit_cast<uint32_t>(from); bits <= std::bit_cast<uint32_t>(to); bits += stride) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  return x;
}

// Units in the last place of the right result.
double ulps(float got, double right) {
  const auto nearest = static_cast<float>(std::abs(right));
  const double unit = double{std::nextafter(nearest, kInfinity)} - double{nearest};
  return std::abs(double{got} - right) / unit;
}

template <class Right>
double largest_error(const Values& x, const Values& got, Right&& right) {
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = right(double{x[i]});
    if (std::abs(wanted) < double{std::numeric_limits<float>::min()}) continue;  // flushed
    const double error = ulps(got[i], wanted);
    EXPECT_TRUE(std::isfinite(error)) << x[i];
    largest = std::max(largest, error);
  }
  return largest;
}

Values exp_of(const IsaKernels& isa, const Values& x) {
  Values y(x.size());
  isa.exp_row(y.data(), x.data(), static_cast<int64_t>(x.size()));
  return y;
}

Values activation_of(const IsaKernels& isa, ActivationKind act, Values x) {
  Values y(x.size());
  isa.activation_row({.y = {y.data()}, .x = {x.data()}, .count = static_cast<int64_t>(x.size()), .act = act});
  return y;
}

class EveryIsa : public ::testing::TestWithParam<const IsaKernels*> {
 protected:
  const IsaKernels& isa() const { return *GetParam(); }
};

TEST_P(EveryIsa, ExpIsWithin1Point2Ulp) {
  const Values x = sweep(1e-6F, 88.72F, 61);
  const double error = largest_error(x, exp_of(isa(), x), [](double v) { return v < -87.33 ? 0 : std::exp(v); });
  RecordProperty("ulp", std::to_string(error));
  EXPECT_LE(error, 1.2);
}

TEST_P(EveryIsa, ExpKnowsItsEnds) {
  const Values y = exp_of(isa(), {0.0F, -0.0F, -kInfinity, -87.4F, -1e30F, 88.8F, 1e30F, kInfinity, kNan});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  for (size_t i = 2; i < 5; ++i) EXPECT_EQ(y[i], 0) << i;
  for (size_t i = 5; i < 8; ++i) EXPECT_EQ(y[i], kInfinity) << i;
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST_P(EveryIsa, TanhIsWithin1Point3Ulp) {
  const Values x = sweep(1e-20F, 30.0F, 1021);
  const double error =
      largest_error(x, activation_of(isa(), ActivationKind::tanh, x), [](double v) { return std::tanh(v); });
  RecordProperty("ulp", std::to_string(error));
  EXPECT_LE(error, 1.3);
  const Values ends = activation_of(isa(), ActivationKind::tanh, {0.0F, kInfinity, -kInfinity, kNan});
  EXPECT_EQ(ends[0], 0);
  EXPECT_EQ(ends[1], 1);
  EXPECT_EQ(ends[2], -1);
  EXPECT_TRUE(std::isnan(ends[3]));
}

TEST_P(EveryIsa, GeluErfKeepsItsTailWithin5Point5Ulp) {
  const Values x = sweep(1e-20F, 12.9F, 1021);
  const auto right = [](double v) { return v * std::erfc(-v / std::numbers::sqrt2) / 2; };
  const double error = largest_error(x, activation_of(isa(), ActivationKind::gelu_erf, x), right);
  RecordProperty("ulp", std::to_string(error));
  EXPECT_LE(error, 5.5);
}

TEST_P(EveryIsa, SiluIsWithin2Point5UlpAndGeluTanhWithin12) {
  const Values x = sweep(1e-20F, 20.0F, 1021);
  const auto right_silu = [](double v) { return v / (1 + std::exp(-v)); };
  const double silu = largest_error(x, activation_of(isa(), ActivationKind::silu, x), right_silu);
  RecordProperty("silu_ulp", std::to_string(silu));
  EXPECT_LE(silu, 2.5);
  // Not far below 0: there the rounding of the exponent dominates.
  const Values y = sweep(1e-20F, 3.0F, 1021);
  const auto right = [](double v) {
    return v / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  };
  const double gelu = largest_error(y, activation_of(isa(), ActivationKind::gelu_tanh, y), right);
  RecordProperty("gelu_tanh_ulp", std::to_string(gelu));
  EXPECT_LE(gelu, 12);
}

TEST_P(EveryIsa, ActivationsKnowTheirEnds) {
  for (const ActivationKind act : {ActivationKind::gelu_erf, ActivationKind::gelu_tanh, ActivationKind::silu}) {
    const Values y = activation_of(isa(), act, {0.0F, 100.0F, 1e30F, kInfinity, -100.0F, -1e30F, kNan});
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 100);
    EXPECT_EQ(y[2], 1e30F);
    EXPECT_EQ(y[3], kInfinity);
    EXPECT_EQ(y[4], 0);
    EXPECT_EQ(y[5], 0);
    EXPECT_TRUE(std::isnan(y[6]));
  }
}

TEST_P(EveryIsa, NarrowRoundsAsToBf16Does) {
  Values x{0.0F, -0.0F, 1.0F, kInfinity, -kInfinity, kNan, 3.4e38F, 1.00390625F, 1.01171875F};
  for (uint32_t bits = 0; bits < 0x7f800000U; bits += 40503) x.push_back(std::bit_cast<float>(bits));
  std::vector<uint16_t> y(x.size());
  isa().narrow(y.data(), x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], to_bf16(x[i]).bits) << x[i];
}

TEST_P(EveryIsa, SoftmaxOfNothingIsZero) {
  Values x(19, -kInfinity), y(19, 1.0F);
  isa().softmax_row(FloatRow{y.data()}, FloatRow{x.data()}, 19);
  for (const float p : y) EXPECT_EQ(p, 0);
}

// --- products --------------------------------------------------------------------------------------------------------

// Values in [-1, 1] as f32 or bf16; `values` holds them exactly either way.
struct Operand {
  Operand(int64_t count, bool bf16, uint32_t seed) : values(static_cast<size_t>(count)) {
    fill_uniform({7, seed}, 0, 1, values);
    if (!bf16) return;
    for (float& v : values) {
      bits.push_back(to_bf16(v).bits);
      v = to_float(to_bf16(v));
    }
  }
  const void* at(size_t i) const {
    return bits.empty() ? static_cast<const void*>(&values[i]) : static_cast<const void*>(&bits[i]);
  }
  double number(int64_t i) const { return double{values[static_cast<size_t>(i)]}; }
  Values values;
  std::vector<uint16_t> bits;
};

// A sum in double, and the error bound of an f32 sum.
struct Sum {
  void add(double term) {
    value += term;
    size += std::abs(term);
  }
  bool near(float got, double roundings) const { return std::abs(double{got} - value) <= size * roundings * 0x1p-24; }
  double value = 0, size = 0;
};

uint16_t* on_a_line(std::vector<uint16_t>& memory) {
  return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / 2;
}

// Inner lengths around a register, a block and several blocks; rows and outputs that leave remainders.
TEST_P(EveryIsa, MatmulNtIsTheDefinitionWhateverTheRowsBeside) {
  constexpr int64_t kRows = 135, kOutputs = 21, kGap = 3;  // between rows: no row begins on a cache line
  std::vector<uint16_t> packed(kernels::cpu::kMatmulScratch / 2 + 32);
  uint16_t* scratch = on_a_line(packed);
  for (const bool bf16 : {false, true}) {
    const auto matmul_nt = bf16 ? isa().matmul_nt_bf16 : isa().matmul_nt_f32;
    for (const int64_t inner : {0, 1, 31, 32, 70, 1024, 1025, 3100}) {
      const int64_t stride = inner + kGap;
      const Operand x(kRows * stride, bf16, 1), w(kOutputs * stride, bf16, 2);
      const auto run = [&](int64_t from, int64_t rows, uint16_t* with) {
        Values y(static_cast<size_t>(rows * kOutputs), kNan);
        matmul_nt({.x = x.at(static_cast<size_t>(from * stride)),
                   .w = w.at(0),
                   .y = y.data(),
                   .x_stride = stride,
                   .w_stride = stride,
                   .y_stride = kOutputs,
                   .rows = rows,
                   .outputs = kOutputs,
                   .inner = inner,
                   .scratch = with});
        return y;
      };
      const Values all = run(0, kRows, scratch);
      for (const int64_t row : {int64_t{0}, int64_t{5}, kRows - 1}) {
        for (int64_t o = 0; o < kOutputs; ++o) {
          Sum right;
          for (int64_t k = 0; k < inner; ++k) right.add(x.number(row * stride + k) * w.number(o * stride + k));
          const double roundings = static_cast<double>(inner) / 16 + 6;  // of a lane and of the tree
          ASSERT_TRUE(right.near(all[static_cast<size_t>(row * kOutputs + o)], roundings)) << inner << ' ' << row;
        }
      }
      for (const auto& [from, rows] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {3, 7}, {10, 33}, {43, 92}}) {
        const Values some = run(from, rows, from % 2 == 0 ? scratch : nullptr);
        const auto* wanted = all.data() + from * kOutputs;
        ASSERT_EQ(std::memcmp(some.data(), wanted, some.size() * sizeof(float)), 0) << inner << ' ' << from;
      }
    }
  }
}

TEST(Isa, TakesANameOrTheFastest) {
  using kernels::cpu::choose_isa;
  for (const IsaKernels* isa : usable_isas()) {
    EXPECT_EQ(choose_isa(isa->name).isa, isa);
    EXPECT_STREQ(choose_isa(isa->name).note, "");
  }
  EXPECT_NE(choose_isa("").isa, nullptr);
  EXPECT_THROW(choose_isa("avx513"), Error);
}

INSTANTIATE_TEST_SUITE_P(IsaKernels, EveryIsa, ::testing::ValuesIn(usable_isas().begin(), usable_isas().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace isa_kernels_test
}  // namespace qkv::test
