// Architectures with RMS norms, except T5.
#include "base/error.h"
#include "model/families/config.h"
#include "model/gguf/gguf_configs.h"
#include "model/gguf/gguf_rope.h"

namespace qkv::gguf_configs {

Json llama_config(const GgufFacts& f) {
  const bool experts = f.whole_or("expert_count", 0) > 0;
  const int64_t window = f.whole_or("attention.sliding_window", 0);
  Json config = llama_like_config(f, experts ? "mixtral" : window > 0 ? "mistral" : "llama");
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
  config["attention_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  if (experts) {
    add_experts(f, config);
  } else {
    config["mlp_bias"] = f.tensor("blk.0.ffn_gate.bias") != nullptr;
  }
  if (experts || window > 0) config["sliding_window"] = window > 0 ? Json(window) : Json();
  return config;
}

Json qwen_config(const GgufFacts& f, const char* model_type) {
  Json config = llama_like_config(f, model_type);
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
  config["use_sliding_window"] = false;
  return config;
}

Json qwen3moe_config(const GgufFacts& f) {
  Json config = qwen_config(f, "qwen3_moe");
  add_experts(f, config);
  config["num_experts"] = config["num_local_experts"];
  config.erase("num_local_experts");
  config["moe_intermediate_size"] = f.whole("expert_feed_forward_length", 1);
  config["norm_topk_prob"] = f.has("expert_weights_norm") ? f.gguf().flag(f.key("expert_weights_norm")) : true;
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = Json::array();
  return config;
}

// `largest`: number of layers of the size whose scores are scaled by the model width per head.
Json gemma_config(const GgufFacts& f, const char* model_type, int64_t period, int64_t largest) {
  Json config = llama_like_config(f, model_type);
  const int64_t layers = config["num_hidden_layers"], width = config["hidden_size"],
                heads = config["num_attention_heads"];
  config.erase("hidden_act");
  config["hidden_activation"] = "gelu_pytorch_tanh";
  config["query_pre_attn_scalar"] = layers == largest ? Json(width / heads) : config["head_dim"];
  if (f.has("attention.sliding_window_pattern")) {
    QKV_CHECK(!f.gguf().is_array(f.key("attention.sliding_window_pattern")), f.name(), ": key ",
              f.key("attention.sliding_window_pattern"), " is a list, which this reader does not know",
              Hint("a number says that the last of so many layers sees all"));
    period = f.whole("attention.sliding_window_pattern", 0, 4096);
  }
  config["layer_types"] = layer_types(layers, period);
  config["sliding_window"] = f.whole_or("attention.sliding_window", 4096);
  config[kNormOffsetKey] = 0;
  return config;
}

Json gemma2_config(const GgufFacts& f) {
  Json config = gemma_config(f, "gemma2", 2, 46);
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
  config["attn_logit_softcapping"] = f.number_or("attn_logit_softcapping", 50);
  config["final_logit_softcapping"] = f.number_or("final_logit_softcapping", 30);
  return config;
}

Json gemma3_config(const GgufFacts& f) {
  Json config = gemma_config(f, "gemma3_text", 6, 62);
  Json full = gguf_rope_parameters(f, config["head_dim"]);
  full["rope_theta"] = f.number_or("rope.freq_base", 1e6);
  config["rope_parameters"] = {
      {"full_attention", full},
      {"sliding_attention", {{"rope_theta", f.number_or("rope.freq_base_swa", 10000)}, {"rope_type", "default"}}}};
  config["attn_logit_softcapping"] = nullptr;
  config["final_logit_softcapping"] =
      f.has("final_logit_softcapping") ? Json(f.number("final_logit_softcapping")) : Json();
  return config;
}

Json phi3_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "phi3");
  const int64_t window = f.whole_or("attention.sliding_window", 0);
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
  config["sliding_window"] = window > 0 ? Json(window) : Json();
  config["original_max_position_embeddings"] =
      f.whole_or("rope.scaling.original_context_length", config["max_position_embeddings"]);
  config["resid_pdrop"] = config["embd_pdrop"] = 0.0;
  return config;
}

// With a window it is an OLMo 3, whose layers in it turn without scaling.
Json olmo2_config(const GgufFacts& f) {
  const bool slides = f.whole_or("attention.sliding_window", 0) > 0;
  Json config = llama_like_config(f, slides ? "olmo3" : "olmo2");
  add_rope(f, config);
  if (!slides) return config;
  add_windows(f, config, 4);
  const Json rope = config["rope_parameters"];
  config["rope_parameters"] = {
      {"full_attention", rope},
      {"sliding_attention", {{"rope_theta", rope.at("rope_theta")}, {"rope_type", "default"}}}};
  return config;
}

Json gpt_oss_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "gpt_oss");
  config["intermediate_size"] = f.whole("expert_feed_forward_length", 1);
  config["attention_bias"] = true;
  add_experts(f, config);
  config["layer_types"] = layer_types(config["num_hidden_layers"], 2);
  config["sliding_window"] = f.whole("attention.sliding_window", 1);
  Json rope = gguf_rope_parameters(f, config["head_dim"]);
  if (rope["rope_type"] == "yarn") rope["truncate"] = false;
  config["rope_parameters"] = rope;
  return config;
}

Json deepseek2_config(const GgufFacts& f) {
  QKV_CHECK(f.tensor("blk.0.attn_k_b.weight") == nullptr && !f.has("attention.key_length_mla"), f.name(),
            ": keeps W_K and W_V of the latent attention apart (attn_k_b, attn_v_b), which this reader does not know",
            Hint("older files keep them as attn_kv_b; fetch one of those or the Hugging Face folder"));
  QKV_CHECK(f.whole_or("expert_gating_func", 1) == 2, f.name(), ": key ", f.key("expert_gating_func"), " is ",
            f.whole_or("expert_gating_func", 1), " but DeepSeek V3 has 2, sigmoid scores",
            Hint("DeepSeek V2 is a family that is not known"));
  Json config = llama_like_config(f, "deepseek_v3");
  const int64_t turned = f.whole("rope.dimension_count", 1), width = config["head_dim"];
  QKV_CHECK(turned < width, f.name(), ": ", f.key("rope.dimension_count"), " is ", turned, " but keys are ", width,
            " wide", Hint("a part of a latent key turns and the rest does not"));
  config["head_dim"] = turned;
  config["qk_rope_head_dim"] = turned;
  config["qk_nope_head_dim"] = width - turned;
  config["v_head_dim"] = f.whole("attention.value_length", 1);
  config["kv_lora_rank"] = f.whole("attention.kv_lora_rank", 1);
  config["q_lora_rank"] = f.has("attention.q_lora_rank") ? Json(f.whole("attention.q_lora_rank", 1)) : Json();
  add_deepseek_experts(f, config);
  config["rope_interleave"] = true;
  Json rope = gguf_rope_parameters(f, turned);
  if (rope["rope_type"] == "yarn") {  // GGUF keeps one of two values; in public models they are equal
    rope["mscale"] = rope["mscale_all_dim"] =
        as_written(static_cast<float>(10 * f.number_or("rope.scaling.yarn_log_multiplier", 0)));
  }
  config["rope_parameters"] = rope;
  return config;
}

Json ernie4_5_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "ernie4_5");
  add_rope(f, config);
  config["use_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

Json exaone4_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "exaone4");
  add_rope(f, config);
  config["sliding_window"] = nullptr;
  if (f.whole_or("attention.sliding_window", 0) > 0) add_windows(f, config, 4);
  return config;
}

Json glm4_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "glm4");
  add_rope(f, config);
  config["attention_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  return config;
}

Json glm4moe_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "glm4_moe");
  add_rope(f, config);
  add_deepseek_experts(f, config);
  // The file counts the layers that predict further tokens, which only training and drafting use.
  const int64_t further = f.whole_or("nextn_predict_layers", 0), all = config["num_hidden_layers"];
  QKV_CHECK(further < all, f.name(), ": all ", all, " layers predict further tokens", Hint("the file is damaged"));
  config["num_hidden_layers"] = all - further;
  config["attention_bias"] = f.tensor("blk.0.attn_q.bias") != nullptr;
  config["use_qk_norm"] = f.tensor("blk.0.attn_q_norm.weight") != nullptr;
  return config;
}

Json granite_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "granite");
  add_rope(f, config);
  config["attention_multiplier"] = f.number("attention.scale");
  config["embedding_multiplier"] = f.number_or("embedding_scale", 1);
  config["residual_multiplier"] = f.number_or("residual_scale", 1);
  config["logits_scaling"] = f.number_or("logit_scale", 1);
  return config;
}

Json qwen2moe_config(const GgufFacts& f) {
  Json config = qwen_config(f, "qwen2_moe");
  add_experts(f, config);
  config["num_experts"] = config["num_local_experts"];
  config.erase("num_local_experts");
  config["moe_intermediate_size"] = f.whole("expert_feed_forward_length", 1);
  config["shared_expert_intermediate_size"] = f.whole("expert_shared_feed_forward_length", 1);
  config["norm_topk_prob"] = false;
  return config;
}

// Every fourth layer has no rotary positions: no key says so.
Json smollm3_config(const GgufFacts& f) {
  Json config = llama_like_config(f, "smollm3");
  add_rope(f, config);
  config["no_rope_layer_interval"] = 4;
  config["use_sliding_window"] = false;
  return config;
}

}  // namespace qkv::gguf_configs
