// Fused products: linear with a residual and feed_forward give the same bits as the separate ops, in outputs and every
// gradient, on every table.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace fused_test {

struct Sizes {
  int64_t rows, in, hidden, out;
  std::vector<int32_t> groups = {};  // rows of each expert, none: one weight for all
};

struct Case {
  const char* name;
  Sizes sizes;
  Gating form;
  bool gated = false, biased = true, residual = true;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

struct Setting {
  const Kernels* kernels;
  Precision precision;
  int threads = 2;
};

// All numbers of one pass: what came out, and the gradients of inputs and weights.
class Hidden {
 public:
  Hidden(const Case& one, const Setting& how, bool backward)
      : case_(one),
        pass_({.kernels = how.kernels, .precision = how.precision, .threads = how.threads, .tape = backward}),
        cx_(pass_.cx) {
    const Sizes& s = one.sizes;
    x_ = pass_.input(numbers(s.rows * s.in, 1), {s.rows, s.in}, cx_.precision.compute);
    if (one.residual) residual_ = pass_.input(numbers(s.rows * s.out, 2), {s.rows, s.out});
    if (!s.groups.empty()) groups_ = ops::RowGroups::of_sizes(cx_, s.groups);
    up_ = affine("up", s.hidden, s.in);
    if (one.gated) gate_ = affine("gate", s.hidden, s.in);
    down_ = affine("down", s.out, s.hidden);
  }

  Tensor fused(bool in_place = false) {
    return ops::feed_forward(cx_, x_,
                             {.up = up_,
                              .gate = gate_,
                              .down = down_,
                              .form = case_.form,
                              .groups = groups_,
                              .out = cx_.precision.exact,
                              .residual = {.x = residual_, .in_place = in_place}});
  }
  Tensor separate() {
    Tensor h;
    if (case_.gated) {
      const Tensor gate = linear(x_, gate_, {});
      h = ops::gated(cx_, gate, linear(x_, up_, {}), case_.form);
    } else {
      h = ops::activation(cx_, linear(x_, up_, {}), case_.form.act);
    }
    const Tensor y = linear(h, down_, cx_.precision.exact);
    return residual_.defined() ? ops::add(cx_, residual_, y) : y;
  }

  // x and residual have another use that comes later, so that gradients are added to what is there.
  std::vector<Numbers> gradients(const Tensor& y) {
    std::vector<Tensor> ends{y, ops::scale(cx_, x_, 0.5)};
    if (residual_.defined()) ends.push_back(ops::scale(cx_, residual_, 0.25));
    uint64_t seed = 50;
    for (const Tensor& end : ends) {
      const Tensor d = cx_.constant(end.shape(), end.dtype());
      to_device(d, normals(++seed, end.count()));
      pass_.tape.seed(cx_, end, d);
    }
    pass_.tape.backward(cx_);
    std::vector<Numbers> all{to_host(pass_.tape.gradient(x_))};
    if (residual_.defined()) all.push_back(to_host(pass_.tape.gradient(residual_)));
    for (const ops::Affine& a : {up_, gate_, down_}) {
      if (a.weight != nullptr) all.push_back(to_host(a.weight->gradient()));
      if (a.bias != nullptr) all.push_back(to_host(a.bias->gradient()));
    }
    return all;
  }

  const Tensor& residual() const { return residual_; }

 private:
  static Numbers numbers(int64_t count, uint64_t seed, double deviation = 1) {
    Numbers values = normals(seed, count, deviation);
    for (double& v : values) v = round_to(DType::bf16, v);
    return values;
  }
  Shape grouped(const Shape& one) const {
    if (case_.sizes.groups.empty()) return one;
    const auto experts = static_cast<int64_t>(case_.sizes.groups.size());
    return one.rank() == 1 ? Shape{experts, one[0]} : Shape{experts, one[0], one[1]};
  }
  ops::Affine affine(const std::string& name, int64_t outputs, int64_t inner) {
    const auto param = [&](const std::string& which, const Shape& shape, double deviation) {
      return &pass_.param(which, numbers(shape.count(), ++seed_, deviation), shape);
    };
    return {param(name, grouped({outputs, inner}), 1 / std::sqrt(static_cast<double>(inner))),
            case_.biased ? param(name + ".bias", grouped({outputs}), 0.5) : nullptr};
  }
  Tensor linear(const Tensor& x, const ops::Affine& a, std::optional<DType> out) {
    return ops::linear(cx_, x, *a.weight, {.bias = a.bias, .groups = groups_, .out = out});
  }

  const Case& case_;
  Pass pass_;
  Context& cx_;
  uint64_t seed_ = 10;
  Tensor x_, residual_;
  ops::RowGroups groups_;
  ops::Affine up_, gate_, down_;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) all.push_back({table, precision});
  }
  all.push_back({&kernels::ref::table(), Precision::f64()});
  all.push_back({kernels::all_tables().back(), Precision::f64()});  // dtypes without an optimised kernel
  all.push_back({kernels::all_tables().back(), {DType::f16, DType::f32}});
  return all;
}

class Fused : public ::testing::TestWithParam<Case> {};

TEST_P(Fused, GivesTheBitsOfTheOpsOneAfterTheOther) {
  for (const Setting& how : settings()) {
    SCOPED_TRACE(std::string(how.kernels->name) + " " + name_of(how.precision.compute));
    Hidden fused(GetParam(), how, true), separate(GetParam(), how, true);
    const Tensor got = fused.fused(), right = separate.separate();
    ASSERT_EQ(got.dtype(), right.dtype());
    ASSERT_EQ(to_host(got), to_host(right));
    const auto got_gradients = fused.gradients(got), right_gradients = separate.gradients(right);
    ASSERT_EQ(got_gradients.size(), right_gradients.size());
    for (size_t i = 0; i < right_gradients.size(); ++i)
      ASSERT_EQ(got_gradients[i], right_gradients[i]) << "number " << i;
    if (GetParam().sizes.rows == 0) continue;
    EXPECT_NE(got_gradients.front(), Numbers(got_gradients.front().size(), 0.0)) << "zeros prove nothing";
  }
}

TEST_P(Fused, GivesThemInThePlaceOfTheResidual) {
  for (const Setting& how : settings()) {
    if (!GetParam().residual) return;
    SCOPED_TRACE(std::string(how.kernels->name) + " " + name_of(how.precision.compute));
    Hidden fused(GetParam(), how, false), separate(GetParam(), how, false);
    const Tensor got = fused.fused(true);
    EXPECT_EQ(got.data(), fused.residual().data());
    ASSERT_EQ(to_host(got), to_host(separate.separate()));
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const Sizes small{.rows = 5, .in = 33, .hidden = 37, .out = 19};
  const auto add = [&](const char* name, Activation act) { all.push_back({name, small, {act}}); };
  add("identity", ops::act::identity);
  add("relu", ops::act::relu);
  add("gelu_erf", ops::act::gelu_erf);
  add("gelu_tanh", ops::act::gelu_tanh);
  add("silu", ops::act::silu);
  add("quick_gelu", ops::act::quick_gelu);
  add("tanh", ops::act::tanh);
  add("softcap", ops::act::softcap(3.0F));
  add("relu_squared", ops::act::relu_squared);
  const auto add_gated = [&](const char* name, Gating form) { all.push_back({name, small, form, true}); };
  add_gated("swiglu", ops::gate::swiglu);
  add_gated("geglu_erf", ops::gate::geglu_erf);
  add_gated("geglu_tanh", ops::gate::geglu_tanh);
  add_gated("clamped", {ops::act::quick_gelu, 1.0F, 1.0F});
  add_gated("gated_identity", {ops::act::identity});
  add_gated("gated_relu", {ops::act::relu, 1.5F, -0.5F});
  all.push_back({.name = "without_bias", .sizes = small, .form = {ops::act::gelu_tanh}, .biased = false});
  all.push_back({.name = "without_residual", .sizes = small, .form = {ops::act::gelu_tanh}, .residual = false});
  all.push_back({.name = "bare_gated",
                 .sizes = small,
                 .form = ops::gate::swiglu,
                 .gated = true,
                 .biased = false,
                 .residual = false});
  all.push_back({.name = "one_column", .sizes = {3, 1, 1, 1}, .form = ops::gate::swiglu, .gated = true});
  all.push_back({.name = "one_row", .sizes = {1, 64, 700, 64}, .form = {ops::act::silu}});
  // More rows and columns than are finished together.
  all.push_back({.name = "many_rows", .sizes = {131, 9, 1100, 20}, .form = {ops::act::gelu_tanh}});
  all.push_back({.name = "many_rows_gated", .sizes = {131, 9, 1100, 20}, .form = ops::gate::swiglu, .gated = true});
  // As tensor cores take them: whole chunks, and more rows than one warpgroup has.
  const Sizes tiles{.rows = 200, .in = 64, .hidden = 136, .out = 72};
  all.push_back({.name = "tiles", .sizes = tiles, .form = {ops::act::gelu_tanh}});
  all.push_back({.name = "tiles_gated", .sizes = tiles, .form = ops::gate::swiglu, .gated = true});
  const Sizes tiles_of_experts{.rows = 200, .in = 64, .hidden = 136, .out = 72, .groups = {70, 0, 129, 1}};
  all.push_back({.name = "tiles_of_experts", .sizes = tiles_of_experts, .form = ops::gate::swiglu, .gated = true});
  const Sizes experts{.rows = 12, .in = 33, .hidden = 37, .out = 19, .groups = {4, 0, 7, 1}};
  all.push_back({.name = "experts", .sizes = experts, .form = ops::gate::clamped_swiglu, .gated = true});
  all.push_back({.name = "experts_not_gated", .sizes = experts, .form = {ops::act::gelu_erf}});
  all.push_back({.name = "no_rows", .sizes = {0, 4, 8, 4}, .form = {ops::act::relu}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(, Fused, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

// A product added to a residual of any dtype: as the product in f32 and then the sum.
TEST(FusedLinear, ResidualIsAddedToAnUnroundedProduct) {
  for (const Kernels* table : kernels::all_tables()) {
    for (const DType stream : {DType::f32, DType::bf16}) {
      for (const bool in_place : {false, true}) {
        Pass pass({.kernels = table, .precision = Precision::bf16(), .threads = 2});
        const Tensor x = pass.input(normals(1, 130 * 24), {130, 24}, DType::bf16);
        const Tensor wide = pass.input(normals(2, 130 * 40), {130, 40}, stream);
        const Tensor residual = wide.slice(1, 3, 33);  // rows of something wider
        const Param& w = pass.param("w", normals(3, 33 * 24), {33, 24});
        const Param& b = pass.param("b", normals(4, 33), {33});
        const Tensor right = ops::add(pass.cx, residual, ops::linear(pass.cx, x, w, {.bias = &b, .out = DType::f32}));
        const Numbers before = to_host(wide);
        const Tensor got = ops::linear(pass.cx, x, w, {.bias = &b, .residual = {residual, in_place}});
        EXPECT_EQ(got.dtype(), stream);
        ASSERT_EQ(to_host(got), to_host(right)) << table->name;
        const Numbers after = to_host(wide);
        for (size_t i = 0; i < after.size(); ++i) {
          const size_t column = i % 40;
          if (in_place && column >= 3 && column < 36) continue;
          ASSERT_EQ(after[i], before[i]) << "element " << i;
        }
      }
    }
  }
}

// Gradients of the inputs of the activation that made x, written or added; either may be absent.
TEST(FusedLinear, GradientsOfAnOriginAreAddedOrWritten) {
  constexpr int64_t kRows = 9, kIn = 35, kOut = 21;
  for (const Kernels* table : kernels::all_tables()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const bool gated : {false, true}) {
        for (const bool add : {false, true}) {
          for (const bool wants_gate : {true, false}) {
            Pass pass({.kernels = table, .threads = 2});
            const auto made = [&](uint64_t seed, int64_t rows, int64_t cols) {  // rows of something wider
              return pass.input(normals(seed, rows * (cols + 5)), {rows, cols + 5}, dtype).slice(1, 2, cols);
            };
            const Tensor dy = made(1, kRows, kOut), w = made(2, kOut, kIn), x = made(3, kRows, kIn);
            const Tensor pre = made(4, kRows, kIn), gate = gated ? made(5, kRows, kIn) : Tensor();
            const Gating form{ops::act::gelu_tanh, 1.2F, 0.5F};
            const Exec& exec = pass.cx.exec;
            std::vector<Numbers> results[2];
            for (const bool fused : {false, true}) {
              const Grad dpre{made(6, kRows, kIn), add};
              const Grad dgate{gated && wants_gate ? made(7, kRows, kIn) : Tensor(), add};
              if (fused) {
                table->linear_backward(
                    exec, {.dy = dy,
                           .x = x,
                           .w = w,
                           .input_act = {.form = form, .pre = pre, .gate = gate, .dpre = dpre, .dgate = dgate}});
              } else {
                const Tensor dx = pass.zeros({kRows, kIn}, dtype);
                table->linear_backward(exec, {.dx = {dx}, .dy = dy, .x = x, .w = w});
                if (gated) {
                  table->gated_backward(exec,
                                        {.dgate = dgate, .dup = dpre, .dy = dx, .gate = gate, .up = pre, .form = form});
                } else {
                  table->activation_backward(exec, {.dx = dpre, .dy = dx, .x = pre, .act = form.act});
                }
              }
              results[fused].push_back(to_host(dpre.tensor));
              if (dgate) results[fused].push_back(to_host(dgate.tensor));
            }
            ASSERT_EQ(results[0], results[1]) << table->name << " " << name_of(dtype) << (gated ? " gated" : "");
          }
        }
      }
    }
  }
}

// q, k and v of one x: dx is that of three products, and a row's does not depend on the others.
TEST(FusedSet, GradientsAreThoseOfTheProducts) {
  constexpr int64_t kIn = 48;
  constexpr int64_t kOut[] = {40, 8, 72};
  const auto dx_of = [&](const Kernels* table, Precision precision, int64_t rows, bool as_set) {
    Pass pass({.kernels = table, .precision = precision, .threads = 2, .tape = true});
    Context& cx = pass.cx;
    const Tensor x = pass.input(normals(1, rows * kIn), {rows, kIn}, precision.compute);
    std::vector<ops::Affine> weights;
    for (const int64_t out : kOut) {
      const auto seed = static_cast<uint64_t>(out);
      weights.push_back(
          {&pass.param("w", normals(seed, out * kIn), {out, kIn}), &pass.param("b", normals(3, out), {out})});
    }
    std::vector<Tensor> y;
    if (as_set) y = ops::linear_set(cx, x, weights);
    for (size_t i = 0; i < std::size(kOut); ++i) {
      if (!as_set) y.push_back(ops::linear(cx, x, *weights[i].weight, {.bias = weights[i].bias}));
      const Tensor dy = pass.zeros(y[i].shape(), precision.compute);
      to_device(dy, normals(4 + i, rows * kOut[i]));
      pass.tape.seed(cx, y[i], dy);
    }
    pass.tape.backward(cx);
    Numbers all = to_host(pass.tape.gradient(x));
    for (const ops::Affine& one : weights) {
      if (rows == 1) break;
      for (const Param* w : {one.weight, one.bias}) {
        const Numbers more = to_host(w->gradient());
        all.insert(all.end(), more.begin(), more.end());
      }
    }
    return all;
  };
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::bf16(), Precision::f32(), Precision::f64()}) {
      const Numbers set = dx_of(table, precision, 100, true), each = dx_of(table, precision, 100, false);
      EXPECT_LE(nmse(set, each), precision.compute == DType::bf16 ? 1e-4 : 0) << table->name;
      const Numbers row = dx_of(table, precision, 1, true);
      EXPECT_EQ(row, Numbers(set.begin(), set.begin() + kIn)) << table->name;
    }
  }
}

}  // namespace fused_test
}  // namespace qkv::test
