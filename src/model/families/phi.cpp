// Phi 1, 1.5 and 2: attention and feed-forward of the same normed input, rotary on part of a head, biases everywhere.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec phi_spec(const Config& c) {
  ModelSpec s = gpt_like(c, true, "gelu_new");
  s.head = {.tied = c.flag({"tie_word_embeddings"}, false), .bias = true};
  for (LayerSpec& layer : s.decoder.layers) {
    layer.place = NormPlace::shared;
    layer.attention.rope = read_rope(c, layer.attention.width, {.part = 0.5});
    if (c.flag({"qk_layernorm"}, false)) layer.attention.qk_norm = AttentionSpec::QkNorm::per_head;
  }
  return s;
}

void phi_names(TensorNames& list) {
  list.tensor("model.embed_tokens.weight", "embed");
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    for (const std::string which : {"q", "k", "v"}) {
      list.linear(file + "self_attn." + which + "_proj", layer + "attn." + which);
    }
    list.linear(file + "self_attn.dense", layer + "attn.o");
    list.linear(file + "self_attn.q_layernorm", layer + "attn.q_norm");
    list.linear(file + "self_attn.k_layernorm", layer + "attn.k_norm");
    list.linear(file + "input_layernorm", layer + "norm_attn");
    list.linear(file + "mlp.fc1", layer + "mlp.up");
    list.linear(file + "mlp.fc2", layer + "mlp.down");
  });
  list.linear("model.final_layernorm", "norm_final");
  list.linear("lm_head", "head");
  list.ignore("*.rotary_emb.inv_freq");
}

}  // namespace

const Family phi{.name = "phi",
                 .architecture = "PhiForCausalLM",
                 .known_as = "Phi-1, Phi-1.5, Phi-2",
                 .spec = phi_spec,
                 .names = phi_names};

}  // namespace qkv::families
