// A factor on each branch (Granite) beside dropout.
#include <gtest/gtest.h>

#include "core/host_values.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace branch_factor_test {

// Logits of one training pass. The factor is that of the spec, or is in the matrices that write into the stream.
std::vector<float> logits(bool in_weights, float dropout) {
  constexpr float kFactor = 0.5F;  // a power of two: no rounding of its own
  const Checkpoint checkpoint = Checkpoint::open(test::golden("granite"));
  test::Pass pass({.kernels = &kernels::best_table()});
  ModelSpec spec = checkpoint.spec;
  for (LayerSpec& layer : spec.decoder.layers) {
    layer.dropout = dropout;
    layer.branch_factor = in_weights ? 1 : static_cast<double>(kFactor);
  }
  Weights weights = checkpoint.weights(cpu_device(), BlockWeights::decoded);
  for (auto& [name, weight] : weights) {
    if (!in_weights || !(name.ends_with(".attn.o") || name.ends_with(".mlp.down"))) continue;
    const Tensor all = weight.writable(pass.cx);
    for (int64_t i = 0; i < all.count(); ++i) all.as<float>()[i] *= kFactor;
    weight.updated();
  }
  const std::unique_ptr<Model> model = Model::make(spec, std::move(weights));
  pass.cx.training = true;
  pass.cx.rng = {.seed = 3, .step = 1};
  const std::vector<int32_t> ids{1, 5, 9, 4, 7, 2};
  const Rows rows = Rows::batch(pass.cx, 1, std::ssize(ids));
  return host_floats(model->logits(pass.cx, {.ids = pass.cx.upload(ids), .rows = &rows}));
}

TEST(BranchFactor, DropsEachBranchOnce) {
  for (const float dropout : {0.0F, 0.3F}) {
    const std::vector<float> factor = logits(false, dropout), scaled = logits(true, dropout);
    ASSERT_EQ(factor.size(), scaled.size());
    for (size_t i = 0; i < factor.size(); ++i) ASSERT_NEAR(factor[i], scaled[i], 1e-5F) << "dropout " << dropout;
  }
  EXPECT_NE(logits(false, 0.0F), logits(false, 0.3F)) << "something is dropped";
}

}  // namespace branch_factor_test
}  // namespace qkv
