// GPT-NeoX and Pythia: parallel attention and feed-forward, rotary on part of a head, W_Q, W_K and W_V fused per head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gpt_neox_spec(const Config& c) {
  ModelSpec s{.vocabulary = c.whole({"vocab_size"}),
              .width = c.whole({"hidden_size"}),
              .context = c.whole({"max_position_embeddings"}, 0),
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_eps"}, 1e-5)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, false)},
              .init = {.std = c.number({"initializer_range"}, 0.02)},
              .tokens = read_token_ids(c)};
  AttentionSpec a{.heads = c.whole({"num_attention_heads"}), .causal = true};
  a.kv_heads = a.heads;
  a.width = a.value_width = s.width / std::max<int64_t>(a.heads, 1);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = c.flag({"attention_bias"}, true);
  a.dropout = c.probability({"attention_dropout"}, 0);
  a.rope = read_rope(c, a.width, {.part = 0.25});
  const FeedForwardSpec feed{
      .width = c.whole({"intermediate_size"}), .act = read_activation(c, {"hidden_act"}, "gelu"), .bias = true};
  const bool parallel = c.flag({"use_parallel_residual"}, true);
  s.decoder.layers = same_layers(c, c.whole({"num_hidden_layers"}),
                                 {.attention = a,
                                  .feed = feed,
                                  .place = parallel ? NormPlace::parallel : NormPlace::before,
                                  .norm = s.norm,
                                  .dropout = c.probability({"hidden_dropout"}, 0)});
  s.decoder.embedding_dropout = c.probability({"hidden_dropout"}, 0);
  return s;
}

void gpt_neox_names(TensorNames& list) {
  list.tensor("gpt_neox.embed_in.weight", "embed");
  auto spec = list.spec().decoder.layers.begin();
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "gpt_neox.layers." + i + ".", layer = "layers." + i + ".";
    const int64_t heads = (spec++)->attention.heads;
    list.linear(file + "input_layernorm", layer + "norm_attn");
    list.linear(file + "post_attention_layernorm", layer + "norm_mlp");
    list.fused(file + "attention.query_key_value", {layer + "attn.q", layer + "attn.k", layer + "attn.v"},
               NamedTensor::Layout::by_head, heads);
    list.linear(file + "attention.dense", layer + "attn.o");
    list.linear(file + "mlp.dense_h_to_4h", layer + "mlp.up");
    list.linear(file + "mlp.dense_4h_to_h", layer + "mlp.down");
  });
  list.linear("gpt_neox.final_layer_norm", "norm_final");
  list.tensor("embed_out.weight", "head");
  list.ignore("*.attention.bias");  // the causal mask, as a buffer
  list.ignore("*.attention.masked_bias");
  list.ignore("*.rotary_emb.inv_freq");
}

}  // namespace

const Family gpt_neox{.name = "gpt_neox",
                      .architecture = "GPTNeoXForCausalLM",
                      .known_as = "GPT-NeoX 20B, Pythia",
                      .spec = gpt_neox_spec,
                      .names = gpt_neox_names};

}  // namespace qkv::families
