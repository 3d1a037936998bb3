#include "model/families/presets.h"

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

struct Preset {
  std::string_view name;
  const char* config;
};

constexpr Preset kPresets[] = {
    {"transformer-base", R"({"model_type": "transformer", "vocab_size": 37000, "d_model": 512,
      "encoder_layers": 6, "decoder_layers": 6, "num_attention_heads": 8, "intermediate_size": 2048})"},
    {"transformer-big", R"({"model_type": "transformer", "vocab_size": 37000, "d_model": 1024,
      "encoder_layers": 6, "decoder_layers": 6, "num_attention_heads": 16, "intermediate_size": 4096,
      "dropout": 0.3})"},
    {"gpt2", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
      "n_head": 12, "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-medium", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1024,
      "n_layer": 24, "n_head": 16, "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-large", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1280,
      "n_layer": 36, "n_head": 20, "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-xl", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1600,
      "n_layer": 48, "n_head": 25, "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"tinyllama-1.1b", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 22,
      "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632, "hidden_act": "silu",
      "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2, "dtype": "bfloat16"})"},
    {"llama-7b", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "hidden_act": "silu",
      "max_position_embeddings": 2048, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2, "dtype": "float16"})"},
    {"llama2-70b", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "hidden_act": "silu",
      "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2, "dtype": "float16"})"},
    {"llama3-8b", R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "hidden_act": "silu",
      "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "tie_word_embeddings": false, "bos_token_id": 128000, "eos_token_id": 128001, "dtype": "bfloat16"})"},
    {"qwen3-0.6b", R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
      "hidden_act": "silu", "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
      "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151645, "dtype": "bfloat16"})"},
    {"mixtral-8x7b", R"({"model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "hidden_act": "silu",
      "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
      "dtype": "bfloat16"})"},
    {"deepseek-v3", R"({"model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168,
      "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "intermediate_size": 18432, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
      "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
      "norm_topk_prob": true, "routed_scaling_factor": 2.5, "hidden_act": "silu",
      "max_position_embeddings": 163840, "rms_norm_eps": 1e-06, "rope_theta": 10000,
      "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                       "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096},
      "tie_word_embeddings": false, "bos_token_id": 0, "eos_token_id": 1, "dtype": "bfloat16"})"},
};

}  // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

Json preset_config(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return parse_json(preset.config, "preset " + name);
  }
  const std::vector<std::string_view> known = preset_names();
  std::string list;
  for (const std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
  const std::string near = nearest_key(name, known);
  QKV_FAIL("there is no preset ", printable(name),
           Hint(near.empty() ? "" : "did you mean " + near + "? ", "presets are ", list));
}

}  // namespace qkv
