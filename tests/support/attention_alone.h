// The golden llama without its feed-forwards: a model whose layers are attention alone.
#pragma once

#include <memory>

#include "model/checkpoint/checkpoint.h"
#include "model/weight_list.h"
#include "support/pass.h"

namespace qkv::test {

inline ModelSpec attention_alone_spec(const Checkpoint& llama) {
  ModelSpec spec = llama.spec;
  for (LayerSpec& layer : spec.decoder.layers) layer.feed.width = 0;
  return spec;
}

inline std::unique_ptr<Model> attention_alone() {
  const Checkpoint llama = Checkpoint::open(golden("llama"));
  const ModelSpec spec = attention_alone_spec(llama);
  Weights all = llama.weights(cpu_device()), kept;
  for (const WeightSpec& weight : weight_list(spec)) {
    for (auto& [name, param] : all) {
      if (name == weight.name) kept.add(std::move(param));
    }
  }
  return Model::make(spec, std::move(kept));
}

}  // namespace qkv::test
