// ERNIE 4.5 (dense): Llama with interleaved rotary pairs.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec ernie4_5_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  const bool bias = c.flag({"use_bias"}, false);
  for (LayerSpec& layer : s.decoder.layers) {
    AttentionSpec& a = layer.attention;
    a.q_bias = a.k_bias = a.v_bias = a.out_bias = layer.feed.bias = bias;
    a.rope->interleaved = true;
  }
  return s;
}

}  // namespace

const Family ernie4_5{.name = "ernie4_5",
                      .architecture = "Ernie4_5ForCausalLM",
                      .known_as = "ERNIE 4.5 0.3B",
                      .spec = ernie4_5_spec,
                      .names = llama_like_names,
                      .defaults = R"({"rms_norm_eps": 1e-5, "rope_theta": 500000})"};

}  // namespace qkv::families
