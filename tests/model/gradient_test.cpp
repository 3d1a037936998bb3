// The gradient of a whole model: the tape against differences of the loss along random directions, in double.
#include <gtest/gtest.h>

#include "core/host_values.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/attention_alone.h"
#include "support/pass.h"

namespace qkv::test {
namespace gradient_test {

const std::vector<int32_t> kIds{1, 5, 9, 40, 7, 7, 23, 60}, kTargets{5, 9, 40, 7, -100, 23, 60, 2};

// The same weights in double: a step of 1e-7 is far above their rounding.
std::unique_ptr<Model> in_double(const std::string& family) {
  const std::unique_ptr<Model> model =
      family == "attention_alone" ? attention_alone() : Checkpoint::open(golden(family)).model();
  Weights wide;
  for (const auto& [name, weight] : model->weights()) {
    const std::vector<float> values = host_floats(weight.master());
    const Param& made = wide.add(Param(name, cpu_device(), DType::f64, weight.shape()));
    to_device(made.master(), Numbers(values.begin(), values.end()));
  }
  return Model::make(model->spec(), std::move(wide));
}

double loss_of(const Model& model, bool backward) {
  Pass pass({.kernels = &kernels::ref::table(), .precision = Precision::f64(), .tape = backward});
  Context& cx = pass.cx;
  const auto length = static_cast<int64_t>(kIds.size());
  const Rows rows = Rows::batch(cx, 1, length);
  Model::Input input{.ids = cx.upload(kIds), .rows = &rows};
  if (model.spec().has_source()) {
    input.source_ids = cx.upload(kIds);
    input.source_rows = &rows;
  }
  const Tensor before = model.head().before_logits(cx, model.states(cx, input));
  const ops::Loss loss = ops::cross_entropy(cx, before, model.head().weight(), cx.upload(kTargets),
                                            {.bias = model.head().bias(),
                                             .rule = {.softcap = model.head().softcap()},
                                             .divisor = static_cast<double>(length)});
  if (backward) pass.tape.backward(cx, loss.loss);
  return to_host(loss.loss)[0];
}

class Gradient : public testing::TestWithParam<std::string> {};

TEST_P(Gradient, OfAWholeModelIsItsSlope) {
  const std::unique_ptr<Model> model = in_double(GetParam());
  loss_of(*model, true);
  for (uint64_t direction = 0; direction < 5; ++direction) {
    std::map<std::string, Numbers> start, along;
    double slope = 0;
    uint64_t n = 0;
    for (auto& [name, weight] : model->weights()) {
      start[name] = to_host(weight.master());
      along[name] = normals(1000 * (direction + 1) + n++, weight.shape().count());
      if (!weight.gradient().defined()) continue;  // a correction bias chooses, and has none
      const Numbers gradient = to_host(weight.gradient());
      for (size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * along[name][i];
    }
    const auto at = [&](double step) {
      for (auto& [name, weight] : model->weights()) {
        Numbers moved = start[name];
        const bool moves = weight.gradient().defined();
        for (size_t i = 0; moves && i < moved.size(); ++i) moved[i] += step * along[name][i];
        to_device(weight.master(), moved);
        weight.updated();
      }
      return loss_of(*model, false);
    };
    constexpr double kStep = 1e-7;  // small: no ReLU may switch within it
    const double difference = (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
    at(0);
    EXPECT_NEAR(slope, difference, 1e-6 * std::max(std::abs(difference), 1e-2)) << "direction " << direction;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Gradient,
                         testing::Values("gpt2", "llama", "gemma2", "gemma3", "gpt_neox", "olmo2", "mixtral",
                                         "deepseek_v3", "gpt_oss", "bert", "marian", "bart", "t5_gated", "bloom",
                                         "granite", "cohere2", "nemotron", "llama4", "qwen2_moe", "modernbert",
                                         "m2m_100", "attention_alone"),
                         [](const auto& tested) { return tested.param; });

}  // namespace gradient_test
}  // namespace qkv::test
