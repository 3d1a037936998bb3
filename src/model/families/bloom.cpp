// BLOOM: ALiBi instead of position embeddings, a norm on the embeddings, W_Q, W_K and W_V fused per head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec bloom_spec(const Config& c) {
  ModelSpec s = gpt_like(c, true, "gelu_new");
  if (c.flag({"apply_residual_connection_post_layernorm"}, false)) {
    c.fail("apply_residual_connection_post_layernorm", "is true", "no public model has this, and it is not known");
  }
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  s.decoder.embedding_norm = true;
  for (LayerSpec& layer : s.decoder.layers) layer.attention.alibi = 1;
  return s;
}

void names_from(TensorNames& list, const std::string& root) {
  list.tensor(root + "word_embeddings.weight", "embed");
  list.linear(root + "word_embeddings_layernorm", "norm_embed");
  auto spec = list.spec().decoder.layers.begin();
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = root + "h." + i + ".", layer = "layers." + i + ".";
    const int64_t heads = (spec++)->attention.heads;
    list.linear(file + "input_layernorm", layer + "norm_attn");
    list.fused(file + "self_attention.query_key_value", {layer + "attn.q", layer + "attn.k", layer + "attn.v"},
               NamedTensor::Layout::by_head, heads);
    list.linear(file + "self_attention.dense", layer + "attn.o");
    list.linear(file + "post_attention_layernorm", layer + "norm_mlp");
    list.linear(file + "mlp.dense_h_to_4h", layer + "mlp.up");
    list.linear(file + "mlp.dense_4h_to_h", layer + "mlp.down");
  });
  list.linear(root + "ln_f", "norm_final");
  list.tensor("lm_head.weight", "head");
  list.ignore("lm_head.weight");
}

}  // namespace

const Family bloom{.name = "bloom",
                   .architecture = "BloomForCausalLM",
                   .known_as = "BLOOM and BLOOMZ 560M to 176B",
                   .spec = bloom_spec,
                   .names = [](TensorNames& list) { names_from(list, "transformer."); },
                   .names_otherwise = [](TensorNames& list) { names_from(list, ""); }};

}  // namespace qkv::families
