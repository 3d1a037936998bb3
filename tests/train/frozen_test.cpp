// Weights that are not trained, by their own names or those of Hugging Face's files.
#include <gtest/gtest.h>

#include <set>

#include "base/expect_error.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "train/trainer.h"

namespace qkv {
namespace frozen_test {

std::set<std::string> frozen(const char* family, const std::vector<std::string>& patterns) {
  const auto model = Checkpoint::open(test::golden(family)).model(cpu_device(), BlockWeights::decoded);
  choose_trainable(*model, patterns);
  std::set<std::string> names;
  for (const auto& [name, weight] : model->weights()) {
    if (!weight.trainable) names.insert(name);
  }
  return names;
}

TEST(Frozen, NamesMayBeHuggingFaces) {
  using Names = std::set<std::string>;
  EXPECT_EQ(frozen("llama", {"model.embed_tokens.weight"}), (Names{"embed"}));
  EXPECT_EQ(frozen("llama", {"model.layers.0.self_attn.*"}), frozen("llama", {"layers.0.attn.*"}));
  EXPECT_EQ(frozen("llama", {"layers.0.attn.*"}).size(), 4U);
  // One tensor of the file, three weights.
  EXPECT_EQ(frozen("gpt2", {"transformer.h.1.attn.c_attn.weight"}),
            (Names{"layers.1.attn.q", "layers.1.attn.k", "layers.1.attn.v"}));
  EXPECT_EQ(frozen("gpt2", {"*.bias"}), frozen("gpt2", {"layers.*.bias", "norm_final.bias"}));
  expect_error([] { frozen("llama", {"model.layer.0.*"}); }, {"'model.layer.0.*'", "'embed'", "Hugging Face's files"});
}

TEST(Frozen, ExpertsAreOneWeight) {
  const std::set<std::string> all = frozen("mixtral", {"layers.0.mlp.experts.gate"});
  EXPECT_EQ(all.size(), 1U);
  for (const char* pattern :
       {"model.layers.0.block_sparse_moe.experts.*.w1.weight", "model.layers.0.mlp.experts.gate_up_proj"}) {
    EXPECT_TRUE(frozen("mixtral", {pattern}).contains("layers.0.mlp.experts.gate")) << pattern;
  }
  expect_error([] { frozen("mixtral", {"model.layers.0.block_sparse_moe.experts.1.*"}); },
               {"is 1 of the", "'layers.0.mlp.experts.down'", "as a whole"});
}

}  // namespace frozen_test
}  // namespace qkv
