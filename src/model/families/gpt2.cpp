// GPT-2: pre-layer-norms, learned positions, weights stored as [in, out].
#include <cmath>

#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gpt2_spec(const Config& c) {
  const int64_t width = c.whole({"n_embd"}), positions = c.whole({"n_positions", "n_ctx"});
  ModelSpec s{.vocabulary = c.whole({"vocab_size"}),
              .width = width,
              .context = positions,
              .dtype = read_dtype(c),
              .norm = {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_epsilon"}, 1e-5)},
              .head = {.tied = c.flag({"tie_word_embeddings"}, true)},
              .init = {.kind = InitSpec::Kind::gpt2, .std = c.number({"initializer_range"}, 0.02)},
              .tokens = read_token_ids(c)};
  AttentionSpec a{.heads = c.whole({"n_head"}), .causal = true};
  a.kv_heads = a.heads;
  a.width = a.value_width = width / std::max<int64_t>(a.heads, 1);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = true;
  a.dropout = c.probability({"attn_pdrop"}, 0.1F);
  if (!c.flag({"scale_attn_weights"}, true)) a.scale = 1;
  const FeedForwardSpec feed{.width = c.whole({"n_inner"}, 4 * width),
                             .act = read_activation(c, {"activation_function"}, "gelu_new"),
                             .bias = true};
  s.decoder.layers =
      same_layers(c, c.whole({"n_layer"}),
                  {.attention = a, .feed = feed, .norm = s.norm, .dropout = c.probability({"resid_pdrop"}, 0.1F)});
  if (c.flag({"scale_attn_by_inverse_layer_idx"}, false)) {
    double depth = 1;
    for (LayerSpec& layer : s.decoder.layers) {
      layer.attention.scale = a.scale.value_or(1 / std::sqrt(static_cast<double>(a.width))) / depth++;
    }
  }
  s.decoder.positions = {.kind = PositionSpec::Kind::learned, .count = positions};
  s.decoder.embedding_dropout = c.probability({"embd_pdrop"}, 0.1F);
  return s;
}

void names_under(TensorNames& list, const std::string& root) {
  list.tensor(root + "wte.weight", "embed");
  list.tensor(root + "wpe.weight", "positions");
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = root + "h." + i + ".", layer = "layers." + i + ".";
    list.linear(file + "ln_1", layer + "norm_attn");
    list.fused(file + "attn.c_attn", {layer + "attn.q", layer + "attn.k", layer + "attn.v"},
               NamedTensor::Layout::transposed);
    list.transposed(file + "attn.c_proj", layer + "attn.o");
    list.linear(file + "ln_2", layer + "norm_mlp");
    list.transposed(file + "mlp.c_fc", layer + "mlp.up");
    list.transposed(file + "mlp.c_proj", layer + "mlp.down");
  });
  list.linear(root + "ln_f", "norm_final");
  list.tensor("lm_head.weight", "head");
  list.ignore("lm_head.weight");
  list.ignore("*.attn.bias");  // the causal mask, as a buffer
  list.ignore("*.attn.masked_bias");
}

}  // namespace

const Family gpt2{.name = "gpt2",
                  .architecture = "GPT2LMHeadModel",
                  .known_as = "GPT-2 124M to 1.5B",
                  .spec = gpt2_spec,
                  .names = [](TensorNames& list) { names_under(list, "transformer."); },
                  .names_otherwise = [](TensorNames& list) { names_under(list, ""); }};

}  // namespace qkv::families
