// Norms' backward may write a gradient rounded for the product that reads it next: every gradient keeps its bits, also where
// more is added to the gradient in between.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace rounded_gradients_test {

constexpr int64_t kRows = 70, kWidth = 64, kHidden = 136;

const Kernels* under = nullptr;
int64_t roundings = 0;

// What a table without rounding does, and the rounding after it.
template <class Args, auto kKernel>
void then_round(const Exec& exec, const Args& a) noexcept {
  Args plain = a;
  plain.rounded = {};
  (under->*kKernel)(exec, plain);
  if (!a.rounded.defined()) return;
  ++roundings;
  under->copy(exec, {.y = a.rounded, .x = a.dx.tensor});
}

Kernels rounding(const Kernels& table) {
  Kernels made = table;
  if (table.rounds_gradients) return made;
  under = &table;
  made.rounds_gradients = true;
  made.layer_norm_backward = then_round<LayerNormBackwardArgs, &Kernels::layer_norm_backward>;
  made.rms_norm_backward = then_round<RmsNormBackwardArgs, &Kernels::rms_norm_backward>;
  return made;
}

// Gradients of x and of all weights of two sublayers. `again`: the stream is read once more before the second norm, so
// that its gradient grows after that norm's backward.
std::vector<Numbers> gradients(const Kernels& table, bool again) {
  Pass pass({.kernels = &table, .precision = Precision::bf16(), .threads = 2, .tape = true});
  std::vector<const Param*> weights;
  const auto param = [&](const Shape& shape) {
    const auto seed = 10 + weights.size();
    weights.push_back(&pass.param("w" + std::to_string(seed), normals(seed, shape.count(), 0.2), shape));
    return weights.back();
  };
  const Tensor x = pass.input(normals(1, kRows * kWidth), {kRows, kWidth}, DType::f32);
  const Tensor first = ops::layer_norm(pass.cx, x, {.weight = param({kWidth}), .bias = param({kWidth})});
  const Tensor middle =
      ops::linear(pass.cx, first, *param({kWidth, kWidth}), {.bias = param({kWidth}), .residual = {x}});
  const Tensor twice = again ? ops::scale(pass.cx, middle, 2) : Tensor();
  const Tensor second = ops::rms_norm(pass.cx, middle, {.weight = param({kWidth})});
  const Tensor sum = ops::feed_forward(pass.cx, second,
                                       {.up = {param({kHidden, kWidth}), param({kHidden})},
                                        .down = {param({kWidth, kHidden}), param({kWidth})},
                                        .form = {{Activation::Kind::gelu_tanh}},
                                        .residual = {middle}});
  const Tensor last = ops::layer_norm(pass.cx, sum, {.weight = param({kWidth})});
  const Tensor seed = pass.input(normals(2, kRows * kWidth), {kRows, kWidth}, last.dtype());
  pass.tape.seed(pass.cx, last, seed);
  if (again) pass.tape.seed(pass.cx, twice, pass.input(normals(3, kRows * kWidth), {kRows, kWidth}, DType::f32));
  pass.tape.backward(pass.cx);
  std::vector<Numbers> found{to_host(pass.tape.gradient(x))};
  for (const Param* weight : weights) found.push_back(to_host(weight->gradient()));
  return found;
}

TEST(RoundedGradients, HaveTheBitsOfOnesRoundedLater) {
  for (const Kernels* table : kernels::all_tables()) {
    Kernels without = *table;
    without.rounds_gradients = false;
    const Kernels with = rounding(*table);
    for (const bool again : {false, true}) {
      roundings = 0;
      EXPECT_EQ(gradients(with, again), gradients(without, again)) << table->name << (again ? ", read again" : "");
      EXPECT_EQ(roundings, table->rounds_gradients ? 0 : 2) << table->name;  // x itself is an input
    }
  }
}

}  // namespace rounded_gradients_test
}  // namespace qkv::test
