// Granite: Llama with multipliers on embeddings, attention, residual branches and logits.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec granite_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  s.decoder.embedding_factor = c.number({"embedding_multiplier"}, 1);
  s.head.factor = 1 / c.number({"logits_scaling"}, 1);
  for (LayerSpec& layer : s.decoder.layers) {
    layer.attention.scale = c.number({"attention_multiplier"}, 1);
    layer.branch_factor = c.number({"residual_multiplier"}, 1);
  }
  return s;
}

}  // namespace

const Family granite{.name = "granite",
                     .architecture = "GraniteForCausalLM",
                     .known_as = "Granite 3 2B and 8B",
                     .spec = granite_spec,
                     .names = llama_like_names};

}  // namespace qkv::families
