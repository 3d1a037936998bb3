// T5, ungated and gated: RMS pre-norms, relative position bias, no 1/sqrt(d).
#include <cmath>

#include "model/families/all.h"

namespace qkv::families {
namespace {

StackSpec stack(const Config& c, const NormSpec& norm, int64_t layers, bool decodes) {
  const std::string form = c.text({"feed_forward_proj"}, "relu");
  const bool gated = c.flag({"is_gated_act"}, form.starts_with("gated-"));
  const std::string named = form.starts_with("gated-") ? form.substr(6) : form;
  const std::string act = form == "gated-gelu" ? "gelu_new" : named;  // as the first checkpoints meant it
  AttentionSpec a{.heads = c.whole({"num_heads"}), .width = c.whole({"d_kv"}), .causal = decodes, .scale = 1};
  a.kv_heads = a.heads;
  a.value_width = a.width;
  a.dropout = c.probability({"dropout_rate"}, 0.1F);
  LayerSpec layer{.attention = a,
                  .feed = {.width = c.whole({"d_ff"}),
                           .gated = gated,
                           .act = read_activation(c, {"dense_act_fn"}, act.c_str()),
                           .dropout = a.dropout},
                  .norm = norm,
                  .dropout = a.dropout};
  if (decodes) {
    layer.cross = a;
    layer.cross->causal = false;
  }
  layer.attention.relative = RelativeBiasSpec{.buckets = c.whole({"relative_attention_num_buckets"}, 32),
                                              .max_distance = c.whole({"relative_attention_max_distance"}, 128)};
  return {.layers = same_layers(c, layers, layer), .embedding_dropout = a.dropout};
}

ModelSpec t5_spec(const Config& c) {
  const int64_t width = c.whole({"d_model"}), layers = c.whole({"num_layers"});
  ModelSpec s{.kind = ModelSpec::Kind::encoder_decoder,
              .vocabulary = c.whole({"vocab_size"}),
              .width = width,
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::rms, .eps = c.number({"layer_norm_epsilon"}, 1e-6)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, true)},
              .init = {.kind = InitSpec::Kind::t5, .std = c.number({"initializer_factor"}, 1)},
              .tokens = read_token_ids(c)};
  if (c.flag({"scale_decoder_outputs"}, s.head.tied)) s.head.factor = 1 / std::sqrt(static_cast<double>(width));
  s.encoder = stack(c, s.norm, layers, false);
  s.decoder = stack(c, s.norm, c.whole({"num_decoder_layers"}, layers), true);
  return s;
}

void t5_names(TensorNames& list) {
  list.tensor("shared.weight", "embed");
  for (const std::string name : {"encoder", "decoder"}) {
    const bool decodes = name == "decoder";
    const std::string weight = name.substr(0, 3) + ".";
    list.tensor_as({.name = name + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                    .parts = {{weight + "relative"}},
                    .layout = NamedTensor::Layout::transposed});
    for_each_layer(decodes ? list.spec().decoder : list.spec().encoder, [&](const std::string& i) {
      const std::string file = name + ".block." + i + ".layer.", layer = weight + "layers." + i + ".";
      for (const std::string which : {"q", "k", "v", "o"}) {
        list.linear(file + "0.SelfAttention." + which, layer + "attn." + which);
        list.linear(file + "1.EncDecAttention." + which, layer + "cross." + which);
      }
      list.tensor_as({.name = file + "0.SelfAttention.relative_attention_bias.weight",
                      .parts = {{layer + "attn.relative"}},
                      .layout = NamedTensor::Layout::transposed});
      list.linear(file + "0.layer_norm", layer + "norm_attn");
      list.linear(file + "1.layer_norm", layer + (decodes ? "norm_cross" : "norm_mlp"));
      if (decodes) list.linear(file + "2.layer_norm", layer + "norm_mlp");
      const std::string feed = file + (decodes ? "2" : "1") + ".DenseReluDense.";
      const bool gated = list.has(layer + "mlp.gate");
      list.linear(feed + "wi_0", layer + "mlp.gate");
      list.linear(feed + (gated ? "wi_1" : "wi"), layer + "mlp.up");
      list.linear(feed + "wo", layer + "mlp.down");
    });
    list.linear(name + ".final_layer_norm", weight + "norm_final");
    list.ignore(name + ".embed_tokens.weight");
  }
  list.tensor("lm_head.weight", "head");
  list.ignore("lm_head.weight");
  list.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");  // never used
}

}  // namespace

const Family t5{.name = "t5",
                .architecture = "T5ForConditionalGeneration",
                .known_as = "T5, Flan-T5, T5 1.1",
                .spec = t5_spec,
                .names = t5_names};

}  // namespace qkv::families
