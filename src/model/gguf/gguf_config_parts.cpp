#include <algorithm>
#include <set>

#include "base/error.h"
#include "io/stored_type.h"
#include "model/gguf/gguf_configs.h"
#include "model/gguf/gguf_rope.h"

namespace qkv::gguf_configs {

int64_t vocabulary(const GgufFacts& f) {
  const StoredTensor* embed = f.tensor("token_embd.weight");
  QKV_CHECK(embed != nullptr, f.name(), ": has no tensor token_embd.weight",
            Hint("this is a vocabulary, an adapter or a part of a split model, not a whole model"));
  QKV_CHECK(embed->shape.size() == 2, f.name(), ": tensor token_embd.weight is ", shape_text(embed->shape),
            " but must be a matrix", Hint("the file is damaged or of another kind"));
  if (f.gguf().has("tokenizer.ggml.tokens")) {
    const auto tokens = static_cast<int64_t>(f.gguf().texts("tokenizer.ggml.tokens").size());
    QKV_CHECK(tokens == embed->shape[0], f.name(), ": the tokenizer has ", tokens, " tokens but token_embd.weight has ",
              embed->shape[0], " rows", Hint("the file mixes a model and a tokenizer that do not belong together"));
  }
  return embed->shape[0];
}

const char* dtype(const GgufFacts& f) {
  std::set<std::string> types;
  for (const StoredTensor& entry : f.entries()) {
    if (entry.shape.size() >= 2 && entry.dtype != "F32") types.insert(entry.dtype);
  }
  if (types == std::set<std::string>{"F16"}) return "float16";
  if (types == std::set<std::string>{"BF16"}) return "bfloat16";
  return "float32";
}

void add_token_ids(const GgufFacts& f, Json& config) {
  for (const auto& [theirs, ours] :
       {std::pair{"bos_token_id", "bos_token_id"}, std::pair{"eos_token_id", "eos_token_id"},
        std::pair{"padding_token_id", "pad_token_id"}}) {
    const std::string key = std::string("tokenizer.ggml.") + theirs;
    config[ours] = nullptr;
    if (!f.gguf().has(key)) continue;
    const int64_t id = f.gguf().integer(key);
    if (id != 0xFFFFFFFF && id != -1) config[ours] = id;  // both are written for "none"
  }
}

void refuse_unknown_maths(const GgufFacts& f) {
  const bool scales = f.arch() == "granite";
  for (const std::string suffix : {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.scale", "logit_scale",
                                   "residual_scale", "embedding_scale", "attention.temperature_scale"}) {
    if ((scales && suffix.ends_with("scale")) || (f.arch() == "cohere2" && suffix == "logit_scale")) continue;
    QKV_CHECK(!f.has(suffix) || f.number(suffix) == 0, f.name(), ": key ", f.key(suffix), " is ", f.number(suffix),
              ", which a model of the architecture ", f.arch(), " cannot have here",
              Hint("the model computes something that is not known; fetch its Hugging Face folder"));
  }
}

Heads heads_of(const GgufFacts& f) {
  Heads h{};
  h.count = f.whole("attention.head_count", 1, 65536);
  h.kv = f.has("attention.head_count_kv") ? f.whole("attention.head_count_kv", 1, h.count) : h.count;
  h.width =
      f.has("attention.key_length") ? f.whole("attention.key_length", 1) : f.whole("embedding_length", 1) / h.count;
  if (f.has("attention.value_length") && !f.has("attention.kv_lora_rank")) {
    const int64_t values = f.whole("attention.value_length", 1);
    QKV_CHECK(values == h.width, f.name(), ": keys are ", h.width, " wide but values ", values,
              Hint("no family of this architecture has such heads"));
  }
  return h;
}

Json llama_like_config(const GgufFacts& f, const char* model_type, const char* layer_norm) {
  const Heads heads = heads_of(f);
  Json config{{"model_type", model_type},
              {"vocab_size", vocabulary(f)},
              {"hidden_size", f.whole("embedding_length", 1)},
              {"num_hidden_layers", f.whole("block_count", 1, 4096)},
              {"num_attention_heads", heads.count},
              {"num_key_value_heads", heads.kv},
              {"head_dim", heads.width},
              {"max_position_embeddings", f.whole("context_length", 1)},
              {"hidden_act", "silu"},
              {"attention_dropout", 0.0},
              {"attention_bias", false},
              {"tie_word_embeddings", f.tensor("output.weight") == nullptr},
              {"dtype", dtype(f)}};
  config[layer_norm != nullptr ? layer_norm : "rms_norm_eps"] =
      f.number(layer_norm != nullptr ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
  config["intermediate_size"] =
      f.has("feed_forward_length") ? f.whole("feed_forward_length", 1) : f.whole("expert_feed_forward_length", 1);
  add_token_ids(f, config);
  return config;
}

void add_rope(const GgufFacts& f, Json& config) {
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
}

Json layer_types(int64_t layers, int64_t period) {  // the last layer of each period has no window
  Json types = Json::array();
  for (int64_t i = 0; i < layers; ++i) {
    types.push_back(period > 0 && (i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  }
  return types;
}

void add_windows(const GgufFacts& f, Json& config, int64_t period) {
  const int64_t layers = config["num_hidden_layers"];
  config["layer_types"] = layer_types(layers, period);
  config["sliding_window"] = f.whole("attention.sliding_window", 1);
  const std::string pattern = f.key("attention.sliding_window_pattern");
  if (!f.gguf().has(pattern)) return;
  if (!f.gguf().is_array(pattern)) {
    config["layer_types"] = layer_types(layers, f.whole("attention.sliding_window_pattern", 0, 4096));
    return;
  }
  const std::vector<int64_t> slides = f.gguf().integers(pattern);
  QKV_CHECK(std::ssize(slides) >= layers, f.name(), ": key ", pattern, " has ", slides.size(),
            " entries but there are ", layers, " layers", Hint("the file is damaged"));
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    config["layer_types"][i] = slides[i] != 0 ? "sliding_attention" : "full_attention";
  }
}

void add_experts(const GgufFacts& f, Json& config) {
  config["num_local_experts"] = f.whole("expert_count", 1, 65536);
  config["num_experts_per_tok"] = f.whole("expert_used_count", 1, 65536);
}

void add_deepseek_experts(const GgufFacts& f, Json& config) {
  config["first_k_dense_replace"] = f.whole_or("leading_dense_block_count", 0);
  config["n_routed_experts"] = f.whole("expert_count", 1, 65536);
  config["num_experts_per_tok"] = f.whole("expert_used_count", 1, 65536);
  config["moe_intermediate_size"] = f.whole("expert_feed_forward_length", 1);
  config["n_shared_experts"] = f.whole_or("expert_shared_count", 0);
  config["routed_scaling_factor"] = f.number_or("expert_weights_scale", 1);
  config["norm_topk_prob"] = f.has("expert_weights_norm") && f.gguf().flag(f.key("expert_weights_norm"));
  config["n_group"] = std::max<int64_t>(f.whole_or("expert_group_count", 1), 1);
  config["topk_group"] = std::max<int64_t>(f.whole_or("expert_group_used_count", 1), 1);
}

}  // namespace qkv::gguf_configs
