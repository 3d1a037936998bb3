#include "model/gguf/gguf_config.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "io/stored_type.h"
#include "model/families/family.h"
#include "model/gguf/gguf_facts.h"
#include "model/gguf/gguf_rope.h"

namespace qkv {
namespace {

// --- keys of all architectures ---------------------------------------------------------------------------------------

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

// The dtype of the matrices if they share a plain one; float32 for blocks.
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

// Keys of features that no family here has; 0 is accepted.
void refuse_unknown_maths(const GgufFacts& f) {
  for (const char* suffix : {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.scale", "logit_scale",
                             "residual_scale", "embedding_scale", "attention.temperature_scale"}) {
    QKV_CHECK(!f.has(suffix) || f.number(suffix) == 0, f.name(), ": key ", f.key(suffix), " is ", f.number(suffix),
              ", which a model of the architecture ", f.arch(), " cannot have here",
              Hint("the model computes something that is not known; fetch its Hugging Face folder"));
  }
}

struct Heads {
  int64_t count, kv, width;
};

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

// The config of a decoder of the Llama kind; the others start from it.
Json llama_like_config(const GgufFacts& f, const char* model_type) {
  const Heads heads = heads_of(f);
  Json config{{"model_type", model_type},
              {"vocab_size", vocabulary(f)},
              {"hidden_size", f.whole("embedding_length", 1)},
              {"num_hidden_layers", f.whole("block_count", 1, 4096)},
              {"num_attention_heads", heads.count},
              {"num_key_value_heads", heads.kv},
              {"head_dim", heads.width},
              {"max_position_embeddings", f.whole("context_length", 1)},
              {"rms_norm_eps", f.number("attention.layer_norm_rms_epsilon")},
              {"hidden_act", "silu"},
              {"attention_dropout", 0.0},
              {"attention_bias", false},
              {"tie_word_embeddings", f.tensor("output.weight") == nullptr},
              {"dtype", dtype(f)}};
  config["intermediate_size"] =
      f.has("feed_forward_length") ? f.whole("feed_forward_length", 1) : f.whole("expert_feed_forward_length", 1);
  add_token_ids(f, config);
  return config;
}

Json layer_types(int64_t layers, int64_t period) {  // the last layer of each period has no window
  Json types = Json::array();
  for (int64_t i = 0; i < layers; ++i) {
    types.push_back(period > 0 && (i + 1) % period != 0 ? "sliding_attention" : "full_attention");
  }
  return types;
}

void add_experts(const GgufFacts& f, Json& config) {
  config["num_local_experts"] = f.whole("expert_count", 1, 65536);
  config["num_experts_per_tok"] = f.whole("expert_used_count", 1, 65536);
}

// --- one function per architecture -----------------------------------------------------------------------------------

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

Json olmo2_config(const GgufFacts& f) {
  QKV_CHECK(f.whole_or("attention.sliding_window", 0) == 0, f.name(), ": key ", f.key("attention.sliding_window"),
            " is ", f.whole("attention.sliding_window"), " but layers of OLMo 2 see all",
            Hint("this is an OLMo 3, a family that is not known"));
  Json config = llama_like_config(f, "olmo2");
  config["rope_parameters"] = gguf_rope_parameters(f, config["head_dim"]);
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
  config["first_k_dense_replace"] = f.whole_or("leading_dense_block_count", 0);
  config["n_routed_experts"] = f.whole("expert_count", 1, 65536);
  config["num_experts_per_tok"] = f.whole("expert_used_count", 1, 65536);
  config["moe_intermediate_size"] = f.whole("expert_feed_forward_length", 1);
  config["n_shared_experts"] = f.whole_or("expert_shared_count", 0);
  config["routed_scaling_factor"] = f.number_or("expert_weights_scale", 1);
  config["norm_topk_prob"] = f.has("expert_weights_norm") && f.gguf().flag(f.key("expert_weights_norm"));
  config["n_group"] = std::max<int64_t>(f.whole_or("expert_group_count", 1), 1);
  config["topk_group"] = std::max<int64_t>(f.whole_or("expert_group_used_count", 1), 1);
  config["rope_interleave"] = true;
  Json rope = gguf_rope_parameters(f, turned);
  if (rope["rope_type"] == "yarn") {  // GGUF keeps one of two values; in public models they are equal
    rope["mscale"] = rope["mscale_all_dim"] =
        as_written(static_cast<float>(10 * f.number_or("rope.scaling.yarn_log_multiplier", 0)));
  }
  config["rope_parameters"] = rope;
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

struct Architecture {
  const char* name;
  Json (*config)(const GgufFacts& f);
};

constexpr Architecture kArchitectures[] = {
    {"bert", bert_config},
    {"deepseek2", deepseek2_config},
    {"gemma2", gemma2_config},
    {"gemma3", gemma3_config},
    {"gpt-oss", gpt_oss_config},
    {"gpt2", gpt2_config},
    {"gptneox", gptneox_config},
    {"llama", llama_config},
    {"olmo2", olmo2_config},
    {"phi3", phi3_config},
    {"qwen2", [](const GgufFacts& f) { return qwen_config(f, "qwen2"); }},
    {"qwen3", [](const GgufFacts& f) { return qwen_config(f, "qwen3"); }},
    {"qwen3moe", qwen3moe_config},
    {"t5", t5_config},
};

}  // namespace

Json config_of(const Gguf& gguf, std::span<const StoredTensor> entries) {
  const GgufFacts facts(gguf, entries);
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (facts.arch() == architecture.name) {
      refuse_unknown_maths(facts);
      Json config = architecture.config(facts);
      config["architectures"] = {family_of(config["model_type"], gguf.name()).architecture};
      return config;
    }
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  QKV_FAIL(gguf.name(), ": is a model of the architecture ", printable(facts.arch()), ", which is not known",
           Hint("known are ", known));
}

}  // namespace qkv
