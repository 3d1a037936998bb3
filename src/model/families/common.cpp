#include <cmath>

#include "model/families/family.h"

namespace qkv {

std::vector<LayerSpec> same_layers(const Config& config, int64_t count, const LayerSpec& layer) {
  constexpr int64_t kMost = 4096;
  if (count < 1 || count > kMost) {
    config.fail("num_hidden_layers", "says " + std::to_string(count) + " layers but 1 to 4096 are possible",
                "the config is damaged");
  }
  return std::vector<LayerSpec>(static_cast<size_t>(count), layer);
}

ModelSpec llama_like(const Config& c) {
  ModelSpec spec{.vocabulary = c.whole({"vocab_size"}),
                 .width = c.whole({"hidden_size"}),
                 .context = c.whole({"max_position_embeddings"}, 0),
                 .dtype = read_dtype(c),
                 .norm = {.kind = NormSpec::Kind::rms, .eps = c.number({"rms_norm_eps"}, 1e-6)},
                 .head = {.tied = c.flag({"tie_word_embeddings"}, false)},
                 .init = {.std = c.number({"initializer_range"}, 0.02)},
                 .tokens = read_token_ids(c)};
  AttentionSpec attention{.heads = c.whole({"num_attention_heads"}), .causal = true, .norm = spec.norm};
  attention.kv_heads = c.whole({"num_key_value_heads"}, attention.heads);
  attention.width = c.whole({"head_dim"}, spec.width / std::max<int64_t>(attention.heads, 1));
  attention.value_width = attention.width;
  attention.dropout = c.probability({"attention_dropout"}, 0);
  attention.q_bias = attention.k_bias = attention.v_bias = attention.out_bias = c.flag({"attention_bias"}, false);
  attention.rope = read_rope(c, attention.width);
  const FeedForwardSpec feed{.width = c.whole({"intermediate_size"}),
                             .gated = true,
                             .act = read_activation(c, {"hidden_act", "hidden_activation"}, "silu"),
                             .bias = c.flag({"mlp_bias"}, false)};
  spec.decoder.layers =
      same_layers(c, c.whole({"num_hidden_layers"}), {.attention = attention, .feed = feed, .norm = spec.norm});
  return spec;
}

void llama_like_ends(TensorNames& list) {
  list.tensor("model.embed_tokens.weight", "embed");
  list.linear("model.norm", "norm_final");
  list.linear("lm_head", "head");
  if (list.spec().head.tied) list.ignore("lm_head.weight");
  list.ignore("*.rotary_emb.inv_freq");
}

void llama_like_attention(TensorNames& list, const std::string& file_layer, const std::string& layer) {
  for (const std::string which : {"q", "k", "v", "o"}) {
    list.linear(file_layer + "self_attn." + which + "_proj", layer + "attn." + which);
  }
  list.linear(file_layer + "self_attn.q_norm", layer + "attn.q_norm");
  list.linear(file_layer + "self_attn.k_norm", layer + "attn.k_norm");
  list.tensor(file_layer + "self_attn.sinks", layer + "attn.sinks");
}

void llama_like_norms(TensorNames& list, const std::string& file_layer, const std::string& layer) {
  list.linear(file_layer + "input_layernorm", layer + "norm_attn");
  if (list.has(layer + "norm_attn_out")) {  // with norms on the outputs, the names shift by one
    list.linear(file_layer + "post_attention_layernorm", layer + "norm_attn_out");
    list.linear(file_layer + "pre_feedforward_layernorm", layer + "norm_mlp");
    list.linear(file_layer + "post_feedforward_layernorm", layer + "norm_mlp_out");
  } else {
    list.linear(file_layer + "post_attention_layernorm", layer + "norm_mlp");
  }
}

void llama_like_feed(TensorNames& list, const std::string& file, const std::string& weight) {
  for (const std::string which : {"gate", "up", "down"}) list.linear(file + which + "_proj", weight + which);
}

void llama_like_experts(TensorNames& list, const std::string& file, const std::string& weight) {
  list.linear(file + "gate", weight + "router");
  for (const std::string which : {"gate", "up", "down"}) {
    list.experts(file + "experts.", "." + which + "_proj.weight", weight + "experts." + which);
  }
}

void packed_experts_names(TensorNames& list) {
  llama_like_names(list, [&](const std::string& file, const std::string& layer) {
    list.linear(file + "mlp.gate", layer + "mlp.router");
    const std::string experts = layer + "mlp.experts.";
    list.tensor_as({.name = file + "mlp.experts.gate_up_proj", .parts = {{experts + "gate"}, {experts + "up"}}});
    list.tensor(file + "mlp.experts.down_proj", experts + "down");
  });
}

ModelSpec gpt_like(const Config& c, bool bias, const char* activation) {
  ModelSpec spec{.vocabulary = c.whole({"vocab_size"}),
                 .width = c.whole({"hidden_size", "n_embd"}),
                 .context = c.whole({"max_position_embeddings", "n_positions", "seq_length"}, 0),
                 .dtype = read_dtype(c),
                 .norm = {.kind = NormSpec::Kind::layer,
                          .eps = c.number({"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}, 1e-5)},
                 .init = {.std = c.number({"initializer_range", "init_std"}, 0.02)},
                 .tokens = read_token_ids(c)};
  AttentionSpec a{.heads = c.whole({"num_attention_heads", "n_head"}), .causal = true, .norm = spec.norm};
  a.kv_heads = c.whole({"num_key_value_heads"}, a.heads);
  a.width = a.value_width = c.whole({"head_dim"}, spec.width / std::max<int64_t>(a.heads, 1));
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = bias;
  a.dropout = c.probability({"attention_dropout", "attn_pdrop"}, 0);
  const FeedForwardSpec feed{
      .width = c.whole({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"}, 4 * spec.width),
      .act = read_activation(c, {"hidden_act", "activation_function", "activation"}, activation),
      .bias = bias};
  spec.decoder.layers =
      same_layers(c, c.whole({"num_hidden_layers", "n_layer"}),
                  {.attention = a,
                   .feed = feed,
                   .norm = spec.norm,
                   .dropout = c.probability({"hidden_dropout", "resid_pdrop", "residual_dropout", "dropout"}, 0)});
  spec.decoder.embedding_dropout = c.probability({"embd_pdrop", "embedding_dropout"}, 0);
  return spec;
}

void use_layer_norms(ModelSpec& spec, const NormSpec& norm) {
  spec.norm = norm;
  for (LayerSpec& layer : spec.decoder.layers) layer.norm = layer.attention.norm = norm;
}

std::vector<bool> read_rope_layers(const Config& c, int64_t layers, int64_t interval) {
  const std::vector<int64_t> listed = c.wholes({"no_rope_layers"});
  interval = c.whole({"no_rope_layer_interval"}, interval);
  if (!listed.empty() && static_cast<int64_t>(listed.size()) != layers) {
    c.fail("no_rope_layers",
           "names " + std::to_string(listed.size()) + " layers but the model has " + std::to_string(layers),
           "one entry per layer, 0 for a layer without rotary positions");
  }
  std::vector<bool> turns;
  for (int64_t i = 0; i < layers; ++i) {
    turns.push_back(listed.empty() ? interval <= 0 || (i + 1) % interval != 0 : listed[static_cast<size_t>(i)] != 0);
  }
  return turns;
}

std::vector<bool> read_used_windows(const Config& c, FunctionRef<bool(int64_t layer)> slides) {
  const int64_t layers = c.whole({"num_hidden_layers"});
  std::vector<bool> sliding = read_sliding(c, layers, nullptr);
  const bool used = c.flag({"use_sliding_window"}, false);
  for (int64_t i = static_cast<int64_t>(sliding.size()); i < layers; ++i) sliding.push_back(used && slides(i));
  return sliding;
}

std::vector<bool> qwen_sliding(const Config& c) {
  const int64_t first = c.whole({"max_window_layers"}, 0);
  return read_used_windows(c, [&](int64_t layer) { return layer >= first; });
}

ModelSpec gemma_like(const Config& c) {
  ModelSpec spec = llama_like(c);
  spec.head.tied = c.flag({"tie_word_embeddings"}, true);
  spec.head.softcap = c.number({"final_logit_softcapping"}, 0);
  // Hugging Face stores norms around 0, GGUF around 1; converting by adding 1 would lose bits.
  spec.norm.offset = c.number({kNormOffsetKey}, 1);
  spec.decoder.embedding_factor = std::sqrt(static_cast<double>(spec.width));
  for (LayerSpec& layer : spec.decoder.layers) {
    layer.place = NormPlace::around;
    layer.norm = layer.attention.norm = spec.norm;
    layer.attention.softcap = c.number({"attn_logit_softcapping"}, 0);
    layer.attention.scale =
        1 / std::sqrt(c.number({"query_pre_attn_scalar"}, static_cast<double>(layer.attention.width)));
    layer.feed.act = read_activation(c, {"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
  }
  return spec;
}

void gemma_like_names(TensorNames& list) {
  llama_like_names(list);
  list.norms_stored_for(1);
}

void torch_attention_names(TensorNames& list, const std::string& file, const std::string& weight) {
  for (const std::string ending : {"", ".bias"}) {
    list.tensor_as({.name = file + (ending.empty() ? "in_proj_weight" : "in_proj_bias"),
                    .parts = {{weight + "q" + ending}, {weight + "k" + ending}, {weight + "v" + ending}}});
  }
  list.linear(file + "out_proj", weight + "o");
}

void llama_like_names(TensorNames& list, LayerNames more) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    llama_like_feed(list, file + "mlp.", layer + "mlp.");
    more(file, layer);
  });
}

void llama_like_names(TensorNames& list) {
  llama_like_names(list, [](const std::string&, const std::string&) {});
}

}  // namespace qkv
