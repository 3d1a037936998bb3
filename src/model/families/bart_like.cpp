#include <cmath>

#include "model/families/family.h"

namespace qkv {
namespace {

PositionSpec read_positions(const Config& c, const PositionSpec& usual, int64_t context) {
  using Kind = PositionSpec::Kind;
  PositionSpec positions = usual;
  positions.kind =
      c.flag({"static_position_embeddings"}, usual.kind == Kind::sinusoidal) ? Kind::sinusoidal : Kind::learned;
  if (positions.kind == Kind::learned) positions.count = context;
  positions.offset = c.whole({"position_offset"}, usual.offset);
  return positions;
}

}  // namespace

ModelSpec bart_like(const Config& c, const BartLike& usual) {
  ModelSpec spec{.kind = ModelSpec::Kind::encoder_decoder,
                 .vocabulary = c.whole({"decoder_vocab_size", "vocab_size"}),
                 .width = c.whole({"d_model"}),
                 .context = c.whole({"max_position_embeddings"}, 0),
                 .dtype = read_dtype(c),
                 .norm = {.kind = NormSpec::Kind::layer, .eps = 1e-5},
                 .head = {.tied = c.flag({"tie_word_embeddings"}, true), .bias = usual.head_bias},
                 .init = {.std = c.number({"init_std"}, 0.02)},
                 .tokens = read_token_ids(c)};
  if (!c.flag({"share_encoder_decoder_embeddings"}, true)) spec.source_vocabulary = c.whole({"vocab_size"});
  const bool before = c.flag({"normalize_before"}, usual.norm_before);
  const auto stack = [&](const std::string& which, bool decodes) {
    AttentionSpec attention{.heads = c.whole({(which + "_attention_heads").c_str()}), .causal = decodes};
    attention.kv_heads = attention.heads;
    attention.width = attention.value_width = spec.width / std::max<int64_t>(attention.heads, 1);
    attention.q_bias = attention.k_bias = attention.v_bias = attention.out_bias = true;
    attention.dropout = c.probability({"attention_dropout"}, 0);
    LayerSpec layer{.attention = attention,
                    .feed = {.width = c.whole({(which + "_ffn_dim").c_str()}),
                             .act = read_activation(c, {"activation_function"}, "gelu"),
                             .bias = true,
                             .dropout = c.probability({"activation_dropout"}, 0)},
                    .place = before ? NormPlace::before : NormPlace::after,
                    .norm = spec.norm,
                    .dropout = c.probability({"dropout"}, 0.1F)};
    if (decodes) {
      layer.cross = attention;
      layer.cross->causal = false;
    }
    return StackSpec{
        .layers = same_layers(c, c.whole({(which + "_layers").c_str()}), layer),
        .positions = read_positions(c, usual.positions, spec.context),
        .embedding_norm = c.flag({"normalize_embedding"}, usual.embedding_norm),
        .final_norm = c.flag({"add_final_layer_norm"}, usual.final_norm),
        .embedding_factor = c.flag({"scale_embedding"}, false) ? std::sqrt(static_cast<double>(spec.width)) : 1,
        .embedding_dropout = layer.dropout};
  };
  spec.encoder = stack("encoder", false);
  spec.decoder = stack("decoder", true);
  return spec;
}

void bart_like_names(TensorNames& list) {
  list.tensor("model.shared.weight", "embed");
  list.tensor("model.encoder.embed_tokens.weight", "enc.embed");
  list.tensor("model.decoder.embed_tokens.weight", "dec.embed");
  for (const std::string stack : {"encoder", "decoder"}) {
    const std::string file = "model." + stack + ".", weight = stack.substr(0, 3) + ".";
    list.tensor(file + "embed_positions.weight", weight + "positions");
    if (!list.has(weight + "positions")) list.ignore(file + "embed_positions.*");  // sinusoids are computed
    list.linear(file + "layernorm_embedding", weight + "norm_embed");
    list.linear(file + "layer_norm", weight + "norm_final");
    for_each_layer(stack == "encoder" ? list.spec().encoder : list.spec().decoder, [&](const std::string& i) {
      const std::string from = file + "layers." + i + ".", to = weight + "layers." + i + ".";
      for (const auto& [theirs, ours] : {std::pair{"self_attn", "attn"}, std::pair{"encoder_attn", "cross"}}) {
        for (const std::string which : {"q", "k", "v"}) {
          list.linear(from + theirs + "." + which + "_proj", to + ours + "." + which);
        }
        list.linear(from + theirs + ".out_proj", to + ours + ".o");
        list.linear(from + theirs + "_layer_norm", to + "norm_" + ours);
      }
      list.linear(from + "fc1", to + "mlp.up");
      list.linear(from + "fc2", to + "mlp.down");
      list.linear(from + "final_layer_norm", to + "norm_mlp");
    });
  }
  list.tensor("lm_head.weight", "head");
  list.tensor_as({.name = "final_logits_bias", .parts = {{"head.bias"}}, .shape = {1, list.spec().vocabulary}});
  list.ignore("model.encoder.embed_tokens.weight");
  list.ignore("model.decoder.embed_tokens.weight");
  list.ignore("lm_head.weight");
}

}  // namespace qkv
