// Which weights Muon moves, and which decay.
#include <gtest/gtest.h>

#include <set>

#include "core/host_values.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "train/step.h"

namespace qkv {
namespace optimizer_rules_test {

using Names = std::set<std::string>;

// "layers.3.attn.q" is "attn.q".
std::string without_layer(const std::string& name) {
  return name.starts_with("layers.") ? name.substr(name.find('.', 7) + 1) : name;
}

struct Treated {
  Names all, muon, decays;
};

// After one step with and without decay; a weight that is the same in both does not decay.
Treated treated(const std::string& family, OptimizerSpec::Kind kind) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  Treated found;
  std::map<std::string, std::vector<float>> weights[2];
  for (const bool decays : {false, true}) {
    const auto model = Checkpoint::open(test::golden(family)).model();
    Optimizer optimizer(model->spec(), model->weights(), {.kind = kind, .decay = decays ? 0.5 : 0.0});
    Arena arena(engine.device()), gradients(engine.device());
    const TrainBatch batch{.ids = test::some_ids(20, 1, model->spec().vocabulary),
                           .targets = test::some_ids(20, 2, model->spec().vocabulary),
                           .lengths = {20},
                           .counted = 20};
    train_step(engine, arena, gradients, *model, optimizer, {&batch, 1}, {.precision = Precision::f32(), .lr = 1e-2});
    for (const auto& [name, weight] : model->weights()) weights[decays ? 1 : 0][name] = host_floats(weight.master());
    if (decays) continue;
    for (const Param* weight : optimizer.trainable()) found.all.insert(without_layer(weight->name()));
    found.muon = found.all;  // AdamW alone keeps second moments
    for (const Optimizer::State& state : optimizer.states()) {
      if (state.name.starts_with("v.")) found.muon.erase(without_layer(state.name.substr(2)));
    }
  }
  for (const auto& [name, numbers] : weights[0]) {
    if (weights[1][name] != numbers) found.decays.insert(without_layer(name));
  }
  return found;
}

Names joined(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

TEST(OptimizerRules, MuonMovesMatricesOfLayersAndMatricesAloneDecay) {
  const Names attention{"attn.q", "attn.k", "attn.v", "attn.o"}, feed{"mlp.gate", "mlp.up", "mlp.down"},
      experts{"mlp.experts.gate", "mlp.experts.up", "mlp.experts.down"};
  const struct {
    const char* family;
    Names muon, others;  // `others` decay too: lookups, the head, routers
  } cases[] = {
      {"llama", joined(attention, feed), {"embed", "head"}},
      {"llama3", joined(attention, feed), {"embed"}},  // tied: the head's product reads the embeddings
      {"gpt_oss",
       joined(attention, experts),
       {"embed", "head", "mlp.router"}},  // biases of experts have two dimensions
  };
  for (const auto& c : cases) {
    const Treated muon = treated(c.family, OptimizerSpec::Kind::muon),
                  adamw = treated(c.family, OptimizerSpec::Kind::adamw);
    EXPECT_EQ(muon.muon, c.muon) << c.family;
    EXPECT_EQ(adamw.muon, Names{}) << c.family;
    EXPECT_EQ(muon.decays, joined(c.muon, c.others)) << c.family << " with muon";
    EXPECT_EQ(adamw.decays, joined(c.muon, c.others)) << c.family << " with adamw";
  }
  const Names all = treated("gpt_oss", OptimizerSpec::Kind::adamw).all;
  for (const char* not_decayed :
       {"mlp.experts.gate.bias", "mlp.router.bias", "attn.sinks", "norm_attn", "attn.q.bias"}) {
    EXPECT_TRUE(all.contains(not_decayed)) << not_decayed << " is not a weight: this test compares nothing";
  }
}

}  // namespace optimizer_rules_test
}  // namespace qkv
