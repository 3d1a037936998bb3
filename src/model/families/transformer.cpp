// The Transformer of 2017, with the names of torch's nn.Transformer. qkv's own: transformers has no such family.
// Without a vocabulary it is nn.Transformer itself: vectors in, vectors out.
#include <cmath>

#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec transformer_spec(const Config& c) {
  ModelSpec s{.kind = ModelSpec::Kind::encoder_decoder,
              .vocabulary = c.whole({"vocab_size"}),
              .width = c.whole({"d_model"}),
              .context = c.whole({"max_position_embeddings"}, 0),
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_eps"}, 1e-5)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, true)},
              .init = {.kind = InitSpec::Kind::xavier},
              .tokens = read_token_ids(c)};
  const bool before = c.flag({"norm_first"}, false);
  const float dropout = c.probability({"dropout"}, 0.1F);
  AttentionSpec a{.heads = c.whole({"num_attention_heads"})};
  a.kv_heads = a.heads;
  a.width = a.value_width = s.width / std::max<int64_t>(a.heads, 1);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = true;
  a.dropout = c.probability({"attention_dropout"}, 0);
  const LayerSpec encodes{.attention = a,
                          .feed = {.width = c.whole({"intermediate_size"}),
                                   .act = read_activation(c, {"activation_function"}, "relu"),
                                   .bias = true,
                                   .dropout = c.probability({"activation_dropout"}, 0)},
                          .place = before ? NormPlace::before : NormPlace::after,
                          .norm = s.norm,
                          .dropout = dropout};
  LayerSpec decodes = encodes;
  decodes.attention.causal = true;
  decodes.cross = a;
  const StackSpec common{.positions = {.kind = PositionSpec::Kind::sinusoidal, .order = ops::Sinusoid::interleaved},
                         .final_norm = c.flag({"final_norm"}, before),
                         .embedding_factor = std::sqrt(static_cast<double>(s.width)),
                         .embedding_dropout = dropout};
  s.encoder = s.decoder = common;
  s.encoder.layers = same_layers(c, c.whole({"encoder_layers"}), encodes);
  s.decoder.layers = same_layers(c, c.whole({"decoder_layers"}), decodes);
  return s;
}

void transformer_names(TensorNames& list) {
  list.tensor("embed.weight", "embed");
  for (const std::string name : {"encoder", "decoder"}) {
    const bool decodes = name == "decoder";
    const std::string weight = name.substr(0, 3) + ".";
    for_each_layer(decodes ? list.spec().decoder : list.spec().encoder, [&](const std::string& i) {
      const std::string file = name + ".layers." + i + ".", layer = weight + "layers." + i + ".";
      torch_attention_names(list, file + "self_attn.", layer + "attn.");
      if (decodes) torch_attention_names(list, file + "multihead_attn.", layer + "cross.");
      list.linear(file + "linear1", layer + "mlp.up");
      list.linear(file + "linear2", layer + "mlp.down");
      list.linear(file + "norm1", layer + "norm_attn");
      list.linear(file + "norm2", layer + (decodes ? "norm_cross" : "norm_mlp"));
      if (decodes) list.linear(file + "norm3", layer + "norm_mlp");
    });
    list.linear(name + ".norm", weight + "norm_final");
  }
  list.tensor("head.weight", "head");
}

}  // namespace

const Family transformer{.name = "transformer",
                         .architecture = "Transformer",
                         .known_as = "the Transformer of 2017; what qkv trains for translation",
                         .spec = transformer_spec,
                         .names = transformer_names};

}  // namespace qkv::families
