// Nemotron and Minitron: layer norms that multiply by 1 + weight, squared ReLU without a gate, rotary on half a head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec nemotron_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  use_layer_norms(
      s, {.kind = NormSpec::Kind::layer, .eps = c.number({"norm_eps"}, 1e-5), .offset = c.number({kNormOffsetKey}, 1)});
  for (LayerSpec& layer : s.decoder.layers) {
    layer.attention.rope = read_rope(c, layer.attention.width, {.part = 0.5});
    layer.feed.gated = false;
    layer.feed.act = read_activation(c, {"hidden_act"}, "relu2");
  }
  return s;
}

void nemotron_names(TensorNames& list) {
  llama_like_names(list);
  list.norms_stored_for(1);
}

}  // namespace

const Family nemotron{.name = "nemotron",
                      .architecture = "NemotronForCausalLM",
                      .known_as = "Nemotron-4, Minitron 4B and 8B",
                      .spec = nemotron_spec,
                      .names = nemotron_names,
                      .defaults = R"({"initializer_range": 0.0134})"};

}  // namespace qkv::families
