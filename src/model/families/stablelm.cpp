// StableLM: Llama with layer norms and rotary on part of a head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec stablelm_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  if (c.flag({"qk_layernorm"}, false)) {
    c.fail("qk_layernorm", "is true", "norms with weights of their own for every head (StableLM 2 12B) are not known");
  }
  use_layer_norms(s, {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_eps"}, 1e-5)});
  for (LayerSpec& layer : s.decoder.layers) {
    if (c.flag({"use_parallel_residual"}, false)) layer.place = NormPlace::shared;
    AttentionSpec& a = layer.attention;
    a.q_bias = a.k_bias = a.v_bias = c.flag({"use_qkv_bias"}, false);
    a.rope = read_rope(c, a.width, {.part = 0.25});
    layer.dropout = c.probability({"hidden_dropout"}, 0);
  }
  return s;
}

}  // namespace

const Family stablelm{.name = "stablelm",
                      .architecture = "StableLmForCausalLM",
                      .known_as = "StableLM 3B, StableLM 2 1.6B",
                      .spec = stablelm_spec,
                      .names = llama_like_names};

}  // namespace qkv::families
