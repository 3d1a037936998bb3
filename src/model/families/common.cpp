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

std::vector<bool> qwen_sliding(const Config& c) {
  const int64_t layers = c.whole({"num_hidden_layers"});
  std::vector<bool> sliding = read_sliding(c, layers, nullptr);
  const bool slides = c.flag({"use_sliding_window"}, false);
  const int64_t first = c.whole({"max_window_layers"}, layers);
  for (int64_t i = static_cast<int64_t>(sliding.size()); i < layers; ++i) sliding.push_back(slides && i >= first);
  return sliding;
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

ModelSpec bart_like(const Config& c) {
  ModelSpec spec{.kind = ModelSpec::Kind::encoder_decoder,
                 .vocabulary = c.whole({"decoder_vocab_size", "vocab_size"}),
                 .width = c.whole({"d_model"}),
                 .context = c.whole({"max_position_embeddings"}, 0),
                 .dtype = read_dtype(c),
                 .norm = {.kind = NormSpec::Kind::layer, .eps = 1e-5},
                 .head = {.tied = c.flag({"tie_word_embeddings"}, true), .bias = true},
                 .init = {.std = c.number({"init_std"}, 0.02)},
                 .tokens = read_token_ids(c)};
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
                    .place = NormPlace::after,
                    .norm = spec.norm,
                    .dropout = c.probability({"dropout"}, 0.1F)};
    if (decodes) {
      layer.cross = attention;
      layer.cross->causal = false;
    }
    return StackSpec{
        .layers = same_layers(c, c.whole({(which + "_layers").c_str()}), layer),
        .final_norm = false,
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
    list.linear(file + "layernorm_embedding", weight + "norm_embed");
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
