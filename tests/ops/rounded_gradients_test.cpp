// Norms may write their results rounded for the product that reads them next, and dropout's backward may write nothing else:
// every gradient keeps its bits, also where more is added to it in between.
#include <gtest/gtest.h>

#include "nn/linear.h"
#include "ops/dropout.h"
#include "support/pass.h"

namespace qkv::test {
namespace rounded_gradients_test {

constexpr int64_t kRows = 70, kWidth = 64, kHidden = 136;

const Kernels* under = nullptr;
int64_t roundings = 0, joined = 0, dropped = 0;

// What a table without rounding does, and the rounding after it.
template <class Args, auto kKernel>
void then_round(const Exec& exec, const Args& a) noexcept {
  Args plain = a;
  plain.rounded = {};
  (under->*kKernel)(exec, plain);
  if (!a.rounded.defined()) return;
  ++roundings;
  if (a.dropout.p > 0) {
    ++dropped;
    under->dropout(exec, {.y = a.rounded, .x = a.dx.tensor, .dropout = a.dropout});
  } else {
    under->copy(exec, {.y = a.rounded, .x = a.dx.tensor});
  }
}

void linear_then_drop(const Exec& exec, const LinearArgs& a) noexcept {
  const Epilogue& f = a.epilogue;
  if (f.dropout.p == 0) return under->linear(exec, a);
  LinearArgs plain = a;
  plain.epilogue = {};
  std::vector<float> sums(static_cast<size_t>(a.y.count()));
  plain.y = Tensor(*exec.device, reinterpret_cast<std::byte*>(sums.data()), DType::f32, a.y.shape());
  under->linear(exec, plain);
  under->dropout(exec, {.y = a.y, .x = plain.y, .residual = f.residual, .dropout = f.dropout});
}

void layer_norm_then_round(const Exec& exec, const LayerNormArgs& a) noexcept {
  LayerNormArgs plain = a;
  plain.rounded = {};
  under->layer_norm(exec, plain);
  if (a.rounded.defined()) under->copy(exec, {.y = a.rounded, .x = a.y});
}
void layer_norm_backward_of_both(const Exec& exec, const LayerNormBackwardArgs& a) noexcept {
  LayerNormBackwardArgs plain = a;
  plain.also = {};
  std::vector<float> sum(static_cast<size_t>(a.dy.count()));
  if (a.also.defined()) {
    ++joined;
    plain.dy = Tensor(*exec.device, reinterpret_cast<std::byte*>(sum.data()), DType::f32, a.dy.shape());
    under->copy(exec, {.y = plain.dy, .x = a.dy});
    under->copy(exec, {.y = plain.dy, .x = a.also, .add = true});
  }
  then_round<LayerNormBackwardArgs, &Kernels::layer_norm_backward>(exec, plain);
}

Kernels rounding(const Kernels& table) {
  Kernels made = table;
  if (table.rounds_norms) return made;
  under = &table;
  made.rounds_norms = made.drops_sums = true;
  made.linear = linear_then_drop;
  made.layer_norm = layer_norm_then_round;
  made.layer_norm_backward = layer_norm_backward_of_both;
  made.rms_norm_backward = then_round<RmsNormBackwardArgs, &Kernels::rms_norm_backward>;
  return made;
}

// A pass in bf16 with a tape, and the weights it has.
struct Learnt {
  Pass pass;
  std::vector<const Param*> weights = {};

  explicit Learnt(const Kernels& table)
      : pass({.kernels = &table, .precision = Precision::bf16(), .threads = 2, .tape = true}) {}
  const Param* param(const Shape& shape) {
    const auto seed = 10 + weights.size();
    weights.push_back(&pass.param("w" + std::to_string(seed), normals(seed, shape.count(), 0.2), shape));
    return weights.back();
  }
  // Those of x and of all weights.
  std::vector<Numbers> gradients(const Tensor& x) const {
    std::vector<Numbers> found{to_host(pass.tape.gradient(x))};
    for (const Param* weight : weights) found.push_back(to_host(weight->gradient()));
    return found;
  }
};

// Gradients of x and of all weights of two sublayers. `again`: the stream is read once more before the second norm, so
// that its gradient grows after that norm's backward.
std::vector<Numbers> gradients(const Kernels& table, bool again) {
  Learnt learnt(table);
  Pass& pass = learnt.pass;
  const Tensor x = pass.input(normals(1, kRows * kWidth), {kRows, kWidth}, DType::f32);
  const Tensor first = ops::layer_norm(pass.cx, x, {.weight = learnt.param({kWidth}), .bias = learnt.param({kWidth})});
  const Tensor middle =
      ops::linear(pass.cx, first, *learnt.param({kWidth, kWidth}), {.bias = learnt.param({kWidth}), .residual = {x}});
  const Tensor twice = again ? ops::scale(pass.cx, middle, 2) : Tensor();
  const Tensor second = ops::rms_norm(pass.cx, middle, {.weight = learnt.param({kWidth})});
  const Tensor sum = ops::feed_forward(pass.cx, second,
                                       {.up = {learnt.param({kHidden, kWidth}), learnt.param({kHidden})},
                                        .down = {learnt.param({kWidth, kHidden}), learnt.param({kWidth})},
                                        .form = {{Activation::Kind::gelu_tanh}},
                                        .residual = {middle}});
  const Tensor last = ops::layer_norm(pass.cx, sum, {.weight = learnt.param({kWidth})});
  const Tensor seed = pass.input(normals(2, kRows * kWidth), {kRows, kWidth}, last.dtype());
  pass.tape.seed(pass.cx, last, seed);
  if (again) pass.tape.seed(pass.cx, twice, pass.input(normals(3, kRows * kWidth), {kRows, kWidth}, DType::f32));
  pass.tape.backward(pass.cx);
  return learnt.gradients(x);
}

TEST(RoundedGradients, HaveTheBitsOfOnesRoundedLater) {
  for (const Kernels* table : kernels::all_tables()) {
    Kernels without = *table;
    without.rounds_norms = false;
    const Kernels with = rounding(*table);
    for (const bool again : {false, true}) {
      roundings = 0;
      EXPECT_EQ(gradients(with, again), gradients(without, again)) << table->name << (again ? ", read again" : "");
      EXPECT_EQ(roundings, table->rounds_norms ? 0 : 2) << table->name;  // x itself is an input
    }
  }
}

// The same of two sublayers of the 2017 Transformer, with dropout. `again`: the product's output is read once more.
std::vector<Numbers> gradients_of_post_norms(const Kernels& table, bool again, bool drops) {
  Learnt learnt(table);
  Pass& pass = learnt.pass;
  pass.cx.training = true;
  const Tensor input = pass.input(normals(1, kRows * kWidth), {kRows, kWidth}, DType::f32);
  Tensor x = ops::scale(pass.cx, input, 0.5);
  std::vector<Tensor> more;
  for (int16_t layer = 0; layer < 2; ++layer) {
    const Tensor y = ops::linear(pass.cx, as_operand(pass.cx, x), *learnt.param({kWidth, kWidth}),
                                 {.bias = learnt.param({kWidth}), .out = DType::f32});
    if (again) more.push_back(ops::scale(pass.cx, y, 3));
    const ops::DropoutOptions dropout{.p = drops ? 0.2F : 0, .place = {Stack::encoder, layer}};
    x = ops::add_residual(pass.cx, {.x = x, .dropout = ops::dropout_of(pass.cx, dropout)}, y);
    x = ops::layer_norm(pass.cx, x,
                        {.weight = learnt.param({kWidth}), .bias = learnt.param({kWidth}), .dtype = DType::f32});
  }
  more.push_back(ops::linear(pass.cx, as_operand(pass.cx, x), *learnt.param({kWidth, kWidth})));
  for (size_t i = 0; i < more.size(); ++i) {
    pass.tape.seed(pass.cx, more[i], pass.input(normals(50 + i, kRows * kWidth), {kRows, kWidth}, more[i].dtype()));
  }
  pass.tape.backward(pass.cx);
  return learnt.gradients(input);
}

TEST(RoundedGradients, OfPostNormsAndDropoutToo) {
  for (const Kernels* table : kernels::all_tables()) {
    Kernels without = *table;
    without.rounds_norms = false;
    const Kernels with = rounding(*table);
    for (const bool again : {false, true}) {
      for (const bool drops : {false, true}) {
        joined = 0;
        EXPECT_EQ(gradients_of_post_norms(with, again, drops), gradients_of_post_norms(without, again, drops))
            << table->name << (again ? ", read again" : "") << (drops ? ", with dropout" : "");
        EXPECT_EQ(joined, table->rounds_norms ? 0 : 2) << table->name;
      }
    }
  }
}

// The same where the product drops what it adds to the stream. `again`: the sum is read once more after the norm.
std::vector<Numbers> gradients_of_dropped_sums(const Kernels& table, bool after, bool again) {
  Learnt learnt(table);
  Pass& pass = learnt.pass;
  Context& cx = pass.cx;
  cx.training = true;
  const Tensor input = pass.input(normals(1, kRows * kWidth), {kRows, kWidth}, DType::f32);
  const auto norm = [&](const Tensor& x) {
    return ops::layer_norm(cx, x,
                           {.weight = learnt.param({kWidth}), .bias = learnt.param({kWidth}), .dtype = DType::f32});
  };
  Tensor x = ops::scale(cx, input, 0.5);
  std::vector<Tensor> results, more;
  for (int16_t layer = 0; layer < 2; ++layer) {
    const ops::Residual sum{.x = x, .dropout = ops::dropout_of(cx, {.p = 0.2F, .place = {Stack::encoder, layer}})};
    const Tensor h = as_operand(cx, after ? x : norm(x));
    const Param &w = *learnt.param({kWidth, kWidth}), *b = learnt.param({kWidth});
    if (table.drops_sums) {
      x = ops::linear(cx, h, w, {.bias = b, .residual = sum});
    } else {
      const Tensor y = ops::linear(cx, h, w, {.bias = b, .out = DType::f32});
      x = ops::add_residual(cx, sum, y);
    }
    results.push_back(x);
    const Tensor added = x;
    if (after) x = norm(x);
    if (again) more.push_back(ops::scale(cx, added, 3));
  }
  more.push_back(ops::linear(cx, as_operand(cx, x), *learnt.param({kWidth, kWidth})));
  for (size_t i = 0; i < more.size(); ++i) {
    pass.tape.seed(cx, more[i], pass.input(normals(50 + i, kRows * kWidth), {kRows, kWidth}, more[i].dtype()));
  }
  pass.tape.backward(cx);
  std::vector<Numbers> found = learnt.gradients(input);
  for (const Tensor& result : results) found.push_back(to_host(result));
  return found;
}

TEST(RoundedGradients, OfSumsThatWereDroppedInTheirProduct) {
  for (const Kernels* table : kernels::all_tables()) {
    Kernels without = *table;
    without.rounds_norms = without.drops_sums = false;
    const Kernels with = rounding(*table);
    for (const bool after : {false, true}) {
      for (const bool again : {false, true}) {
        dropped = 0;
        EXPECT_EQ(gradients_of_dropped_sums(with, after, again), gradients_of_dropped_sums(without, after, again))
            << table->name << (after ? ", norms after" : "") << (again ? ", read again" : "");
        EXPECT_EQ(dropped, table->drops_sums ? 0 : after ? 2 : 1) << table->name;
      }
    }
  }
}

// Only for a step that reads it so.
TEST(RoundedGradients, OfDropoutAreInFullWhereAllOfThemIsRead) {
  const auto gradient = [](const Precision& precision) {
    Pass pass({.precision = precision, .tape = true});
    pass.cx.training = true;
    const Tensor input = pass.input(normals(1, kRows * kWidth), {kRows, kWidth}, DType::f32);
    const Tensor x = ops::scale(pass.cx, input, 1), stream = ops::scale(pass.cx, input, 0);
    const Tensor y = ops::add_residual(pass.cx, {.x = stream, .dropout = ops::dropout_of(pass.cx, {.p = 0.3F})}, x);
    pass.tape.seed(pass.cx, y, pass.input(normals(2, kRows * kWidth), {kRows, kWidth}, DType::f32));
    pass.tape.backward(pass.cx);
    return to_host(pass.tape.gradient(input));
  };
  EXPECT_EQ(gradient(Precision::bf16()), gradient(Precision::f32()));
}

}  // namespace rounded_gradients_test
}  // namespace qkv::test
