// ModernBERT: rotary positions, norms without bias before the sublayers, two layers of three in a sliding window.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec modernbert_spec(const Config& c) {
  ModelSpec s{.kind = ModelSpec::Kind::encoder_only,
              .vocabulary = c.whole({"vocab_size"}),
              .width = c.whole({"hidden_size"}),
              .context = c.whole({"max_position_embeddings"}),
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::layer,
                       .eps = c.number({"norm_eps"}, 1e-5),
                       .bias = c.flag({"norm_bias"}, false)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, true),
                       .bias = c.flag({"decoder_bias"}, true),
                       .transform = true,
                       .transform_bias = c.flag({"classifier_bias"}, false),
                       .act = read_activation(c, {"classifier_activation"}, "gelu")},
              .init = {.std = c.number({"initializer_range"}, 0.02)},
              .tokens = read_token_ids(c)};
  AttentionSpec a{.heads = c.whole({"num_attention_heads"})};
  a.kv_heads = a.heads;
  a.width = a.value_width = s.width / std::max<int64_t>(a.heads, 1);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = c.flag({"attention_bias"}, false);
  a.dropout = c.probability({"attention_dropout"}, 0);
  const FeedForwardSpec feed{.width = c.whole({"intermediate_size"}),
                             .gated = true,
                             .act = read_activation(c, {"hidden_activation"}, "gelu"),
                             .bias = c.flag({"mlp_bias"}, false),
                             .dropout = c.probability({"mlp_dropout"}, 0)};
  s.encoder = {.layers = same_layers(c, c.whole({"num_hidden_layers"}), {.attention = a, .feed = feed, .norm = s.norm}),
               .embedding_norm = true,
               .embedding_dropout = c.probability({"embedding_dropout"}, 0)};
  s.encoder.layers.front().attention_norm = false;  // the embeddings are normed already
  const int64_t every = std::max<int64_t>(c.whole({"global_attn_every_n_layers"}, 3), 1);
  const std::vector<bool> sliding = read_sliding(c, static_cast<int64_t>(s.encoder.layers.size()), nullptr);
  for (size_t i = 0; i < s.encoder.layers.size(); ++i) {
    AttentionSpec& one = s.encoder.layers[i].attention;
    const bool slides = sliding.empty() ? static_cast<int64_t>(i) % every != 0 : sliding[i];
    if (slides) one.window = c.whole({"local_attention"}, 128) / 2 + 1;  // so many to each side, and itself
    one.rope = read_rope(c, one.width,
                         {.layer_type = slides ? "sliding_attention" : "full_attention",
                          .base = slides ? "local_rope_theta" : "global_rope_theta"});
  }
  return s;
}

void modernbert_names(TensorNames& list) {
  list.tensor("model.embeddings.tok_embeddings.weight", "embed");
  list.linear("model.embeddings.norm", "norm_embed");
  for_each_layer(list.spec().encoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    list.linear(file + "attn_norm", layer + "norm_attn");
    list.fused(file + "attn.Wqkv", {layer + "attn.q", layer + "attn.k", layer + "attn.v"});
    list.linear(file + "attn.Wo", layer + "attn.o");
    list.linear(file + "mlp_norm", layer + "norm_mlp");
    list.fused(file + "mlp.Wi", {layer + "mlp.gate", layer + "mlp.up"});
    list.linear(file + "mlp.Wo", layer + "mlp.down");
  });
  list.linear("model.final_norm", "norm_final");
  list.linear("head.dense", "head.dense");
  list.linear("head.norm", "head.norm");
  list.linear("decoder", "head");
  list.ignore("decoder.weight");
}

}  // namespace

const Family modernbert{.name = "modernbert",
                        .architecture = "ModernBertForMaskedLM",
                        .known_as = "ModernBERT base and large",
                        .spec = modernbert_spec,
                        .names = modernbert_names,
                        .defaults = R"({"local_rope_theta": 10000, "global_rope_theta": 160000})"};

}  // namespace qkv::families
