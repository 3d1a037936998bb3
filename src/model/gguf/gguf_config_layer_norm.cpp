// Architectures with layer norms, and T5.
#include "base/error.h"
#include "model/families/config.h"
#include "model/gguf/gguf_configs.h"
#include "model/gguf/gguf_rope.h"

namespace qkv::gguf_configs {

Json gpt2_config(const GgufFacts& f) {
  const int64_t width = f.whole("embedding_length", 1), inner = f.whole("feed_forward_length", 1);
  Json config{{"model_type", "gpt2"},
              {"vocab_size", vocabulary(f)},
              {"n_embd", width},
              {"n_head", f.whole("attention.head_count", 1, 65536)},
              {"n_layer", f.whole("block_count", 1, 4096)},
              {"n_positions", f.whole("context_length", 1)},
              {"n_inner", inner == 4 * width ? Json() : Json(inner)},
              {"layer_norm_epsilon", f.number("attention.layer_norm_epsilon")},
              {"activation_function", "gelu_new"},
              {"tie_word_embeddings", f.tensor("output.weight") == nullptr},
              {"dtype", dtype(f)}};
  add_token_ids(f, config);
  return config;
}

Json gptneox_config(const GgufFacts& f) {
  const Heads heads = heads_of(f);
  Json config{
      {"model_type", "gpt_neox"},
      {"vocab_size", vocabulary(f)},
      {"hidden_size", f.whole("embedding_length", 1)},
      {"intermediate_size", f.whole("feed_forward_length", 1)},
      {"num_hidden_layers", f.whole("block_count", 1, 4096)},
      {"num_attention_heads", heads.count},
      {"max_position_embeddings", f.whole("context_length", 1)},
      {"layer_norm_eps", f.number("attention.layer_norm_epsilon")},
      {"hidden_act", "gelu"},
      {"attention_bias", f.tensor("blk.0.attn_qkv.bias") != nullptr},
      {"rope_parameters", gguf_rope_parameters(f, heads.width)},
      {"use_parallel_residual", f.has("use_parallel_residual") ? f.gguf().flag(f.key("use_parallel_residual")) : true},
      {"tie_word_embeddings", f.tensor("output.weight") == nullptr},
      {"dtype", dtype(f)}};
  add_token_ids(f, config);
  return config;
}

// T5 1.0 is ungated, tied and scales the input of the head; from 1.1 on it is gated and unscaled.
Json t5_config(const GgufFacts& f) {
  const Heads heads = heads_of(f);
  const bool gated = f.tensor("dec.blk.0.ffn_gate.weight") != nullptr, tied = f.tensor("output.weight") == nullptr;
  const int64_t layers = f.whole("block_count", 1, 4096);
  Json config{{"model_type", "t5"},
              {"is_encoder_decoder", true},
              {"vocab_size", vocabulary(f)},
              {"d_model", f.whole("embedding_length", 1)},
              {"d_ff", f.whole("feed_forward_length", 1)},
              {"d_kv", heads.width},
              {"num_heads", heads.count},
              {"num_layers", layers},
              {"num_decoder_layers", f.has("decoder_block_count") ? f.whole("decoder_block_count", 1, 4096) : layers},
              {"layer_norm_epsilon", f.number("attention.layer_norm_rms_epsilon")},
              {"relative_attention_num_buckets", f.whole("attention.relative_buckets_count", 4, 1 << 20)},
              {"relative_attention_max_distance", 128},
              {"feed_forward_proj", gated ? "gated-gelu" : "relu"},
              {"is_gated_act", gated},
              {"dense_act_fn", gated ? "gelu_new" : "relu"},
              {"scale_decoder_outputs", tied && !gated},
              {"tie_word_embeddings", tied},
              {"decoder_start_token_id", f.whole_or("decoder_start_token_id", 0)},
              {"dtype", dtype(f)}};
  add_token_ids(f, config);
  return config;
}

Json bert_config(const GgufFacts& f) {
  QKV_FAIL(f.name(), ": is a BERT without the head that names masked words, and the family here is BERT with it",
           Hint("fetch the Hugging Face folder of BertForMaskedLM"));
}

Json bloom_config(const GgufFacts& f) {
  Json config{{"model_type", "bloom"},
              {"vocab_size", vocabulary(f)},
              {"hidden_size", f.whole("embedding_length", 1)},
              {"n_head", f.whole("attention.head_count", 1, 65536)},
              {"n_layer", f.whole("block_count", 1, 4096)},
              {"seq_length", f.whole("context_length", 1)},
              {"n_inner", f.whole("feed_forward_length", 1)},
              {"layer_norm_epsilon", f.number("attention.layer_norm_epsilon")},
              {"tie_word_embeddings", f.tensor("output.weight") == nullptr},
              {"dtype", dtype(f)}};
  add_token_ids(f, config);
  return config;
}

Json cohere2_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "cohere2", "layer_norm_eps");
  add_rope(f, config);
  add_windows(f, config, 4);
  config["logit_scale"] = f.number("logit_scale");
  return config;
}

// 7B has one norm and one key/value head, 40B and 180B two norms and groups, 11B one norm and groups.
Json falcon_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "falcon", "layer_norm_epsilon");
  add_rope(f, config);
  const bool two = f.tensor("blk.0.attn_norm_2.weight") != nullptr, grouped = two || config["num_key_value_heads"] > 1;
  config["ffn_hidden_size"] = config["intermediate_size"];
  config["num_kv_heads"] = config["num_key_value_heads"];
  config["new_decoder_architecture"] = grouped;
  config["num_ln_in_parallel_attn"] = grouped ? Json(two ? 2 : 1) : Json();
  config["multi_query"] = config["parallel_attn"] = true;
  config["alibi"] = config["bias"] = false;
  config["activation"] = "gelu";
  for (const char* not_falcon : {"hidden_act", "intermediate_size", "num_key_value_heads", "head_dim"}) {
    config.erase(not_falcon);
  }
  return config;
}

Json nemotron_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "nemotron", "norm_eps");
  add_rope(f, config);
  config["hidden_act"] = "relu2";
  config[kNormOffsetKey] = 0;
  return config;
}

Json phi2_config(const GgufFacts& f) {
  QKV_CHECK(f.tensor("blk.0.attn_qkv.weight") == nullptr, f.name(), ": keeps W_Q, W_K and W_V in one tensor, attn_qkv",
            Hint("newer files keep them apart; fetch one of those or the Hugging Face folder"));
  Json config = llama_like_config(f, "phi", "layer_norm_eps");
  add_rope(f, config);
  config["hidden_act"] = "gelu_new";
  return config;
}

Json stablelm_config(const GgufFacts& f) {
  QKV_CHECK(f.tensor("blk.0.attn_q_norm.weight") == nullptr, f.name(), ": has norms on the heads of q and k",
            Hint("StableLM 2 12B is not known; the smaller ones are"));
  Json config = llama_like_config(f, "stablelm", "layer_norm_eps");
  add_rope(f, config);
  config["use_qkv_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  config["use_parallel_residual"] = f.tensor("blk.0.ffn_norm.weight") == nullptr;
  return config;
}

Json starcoder2_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "starcoder2", "norm_epsilon");
  add_rope(f, config);
  const int64_t window = f.whole_or("attention.sliding_window", 0);
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["use_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  config["sliding_window"] = window > 0 ? Json(window) : Json();
  return config;
}

}  // namespace qkv::gguf_configs
