#include "model/families/family.h"

namespace qkv {

ModelSpec bert_like(const Config& c) {
  ModelSpec s{.kind = ModelSpec::Kind::encoder_only,
              .vocabulary = c.whole({"vocab_size"}),
              .width = c.whole({"hidden_size"}),
              .context = c.whole({"max_position_embeddings"}),
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_eps"}, 1e-12)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, true), .bias = true, .transform = true},
              .init = {.std = c.number({"initializer_range"}, 0.02)},
              .tokens = read_token_ids(c)};
  s.head.act = read_activation(c, {"hidden_act"}, "gelu");
  AttentionSpec a{.heads = c.whole({"num_attention_heads"})};
  a.kv_heads = a.heads;
  a.width = a.value_width = s.width / std::max<int64_t>(a.heads, 1);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = true;
  a.dropout = c.probability({"attention_probs_dropout_prob"}, 0.1F);
  const float dropout = c.probability({"hidden_dropout_prob"}, 0.1F);
  s.encoder = {
      .layers = same_layers(c, c.whole({"num_hidden_layers"}),
                            {.attention = a,
                             .feed = {.width = c.whole({"intermediate_size"}), .act = s.head.act, .bias = true},
                             .place = NormPlace::after,
                             .norm = s.norm,
                             .dropout = dropout}),
      .positions = {.kind = PositionSpec::Kind::learned, .count = s.context},
      .token_types = c.whole({"type_vocab_size"}, 2),
      .embedding_norm = true,
      .final_norm = false,
      .embedding_dropout = dropout};
  return s;
}

void bert_like_names(TensorNames& list, const BertNames& names) {
  const auto norm = [&](const std::string& name, const std::string& weight) {
    list.tensor(name + names.norm_weight, weight);
    list.tensor(name + names.norm_bias, weight + ".bias");
  };
  const std::string embeddings = names.root + "embeddings.";
  norm(embeddings + "LayerNorm", "norm_embed");
  list.tensor(embeddings + "word_embeddings.weight", "embed");
  list.tensor(embeddings + "position_embeddings.weight", "positions");
  list.tensor(embeddings + "token_type_embeddings.weight", "types");
  for_each_layer(list.spec().encoder, [&](const std::string& i) {
    const std::string file = names.root + "encoder.layer." + i + ".", layer = "layers." + i + ".";
    list.linear(file + "attention.self.query", layer + "attn.q");
    list.linear(file + "attention.self.key", layer + "attn.k");
    list.linear(file + "attention.self.value", layer + "attn.v");
    list.linear(file + "attention.output.dense", layer + "attn.o");
    norm(file + "attention.output.LayerNorm", layer + "norm_attn");
    list.linear(file + "intermediate.dense", layer + "mlp.up");
    list.linear(file + "output.dense", layer + "mlp.down");
    norm(file + "output.LayerNorm", layer + "norm_mlp");
  });
  list.ignore(names.root + "pooler.*");
  list.ignore(embeddings + "position_ids");
}

}  // namespace qkv
