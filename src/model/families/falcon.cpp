// Falcon: attention and feed-forward of the same x, with one norm (7B), with two (40B, 180B) or one after the other (RW).
#include <cmath>

#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec falcon_spec(const Config& c) {
  ModelSpec s = gpt_like(c, c.flag({"bias"}, false), "gelu");
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  const bool grouped = c.flag({"new_decoder_architecture"}, false), alibi = c.flag({"alibi"}, false);
  const bool parallel = grouped || c.flag({"parallel_attn"}, true);
  const bool two_norms = grouped && c.whole({"num_ln_in_parallel_attn"}, 2) == 2;
  for (LayerSpec& layer : s.decoder.layers) {
    AttentionSpec& a = layer.attention;
    const int64_t said = c.whole({"num_kv_heads", "n_head_kv"}, a.heads);
    a.kv_heads = grouped ? said : c.flag({"multi_query"}, true) ? 1 : a.heads;
    layer.place = !parallel ? NormPlace::before : two_norms ? NormPlace::parallel : NormPlace::shared;
    if (alibi) {
      a.alibi = 1 / std::sqrt(static_cast<double>(a.width));  // added before the scores are scaled
    } else {
      a.rope = read_rope(c, a.width);
    }
  }
  return s;
}

void falcon_names(TensorNames& list) {
  using Layout = NamedTensor::Layout;
  list.tensor("transformer.word_embeddings.weight", "embed");
  auto spec = list.spec().decoder.layers.begin();
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "transformer.h." + i + ".", layer = "layers." + i + ".";
    const LayerSpec& l = *spec++;
    const bool two = l.place == NormPlace::parallel;
    list.linear(file + (two ? "ln_attn" : "input_layernorm"), layer + "norm_attn");
    list.linear(file + (two ? "ln_mlp" : "post_attention_layernorm"), layer + "norm_mlp");
    // The queries of a key/value head, its key, its value; then of the next.
    list.fused(file + "self_attention.query_key_value", {layer + "attn.q", layer + "attn.k", layer + "attn.v"},
               Layout::by_head, l.attention.kv_heads);
    list.linear(file + "self_attention.dense", layer + "attn.o");
    list.linear(file + "mlp.dense_h_to_4h", layer + "mlp.up");
    list.linear(file + "mlp.dense_4h_to_h", layer + "mlp.down");
  });
  list.linear("transformer.ln_f", "norm_final");
  list.tensor("lm_head.weight", "head");
  list.ignore("lm_head.weight");
}

}  // namespace

const Family falcon{.name = "falcon",
                    .architecture = "FalconForCausalLM",
                    .known_as = "Falcon 7B, 11B, 40B, 180B and RW",
                    .spec = falcon_spec,
                    .names = falcon_names};

}  // namespace qkv::families
