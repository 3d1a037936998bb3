// Parts of gguf_config.cpp: what GGUF's keys say, as Hugging Face writes it. Every function of one architecture returns
// the config.json of its models.
#pragma once

#include "base/json.h"
#include "model/gguf/gguf_facts.h"

namespace qkv::gguf_configs {

int64_t vocabulary(const GgufFacts& f);
// The dtype of the matrices if they share a plain one; float32 for blocks.
const char* dtype(const GgufFacts& f);
void add_token_ids(const GgufFacts& f, Json& config);
// Keys of features that a family here may not have; 0 is accepted.
void refuse_unknown_maths(const GgufFacts& f);
struct Heads {
  int64_t count, kv, width;
};
Heads heads_of(const GgufFacts& f);
// The config of a decoder of the Llama kind; the others start from it. `layer_norm`: the config's name of the epsilon of
// layer norms; RMS norms otherwise.
Json llama_like_config(const GgufFacts& f, const char* model_type, const char* layer_norm = nullptr);
void add_rope(const GgufFacts& f, Json& config);
Json layer_types(int64_t layers, int64_t period);  // the last layer of each period has no window
// Which layers slide: a list in the file, or the architecture's period.
void add_windows(const GgufFacts& f, Json& config, int64_t period);
void add_experts(const GgufFacts& f, Json& config);
// Sigmoid experts: DeepSeek V3, GLM 4.5.
void add_deepseek_experts(const GgufFacts& f, Json& config);

Json llama_config(const GgufFacts& f);
Json qwen_config(const GgufFacts& f, const char* model_type);
Json qwen3moe_config(const GgufFacts& f);
Json gemma_config(const GgufFacts& f, const char* model_type, int64_t period, int64_t largest);
Json gemma2_config(const GgufFacts& f);
Json gemma3_config(const GgufFacts& f);
Json phi3_config(const GgufFacts& f);
Json gpt2_config(const GgufFacts& f);
Json gptneox_config(const GgufFacts& f);
Json olmo2_config(const GgufFacts& f);
Json gpt_oss_config(const GgufFacts& f);
Json deepseek2_config(const GgufFacts& f);
Json t5_config(const GgufFacts& f);
Json bert_config(const GgufFacts& f);
Json bloom_config(const GgufFacts& f);
Json cohere2_config(const GgufFacts& f);
Json ernie4_5_config(const GgufFacts& f);
Json exaone4_config(const GgufFacts& f);
Json falcon_config(const GgufFacts& f);
Json glm4_config(const GgufFacts& f);
Json glm4moe_config(const GgufFacts& f);
Json granite_config(const GgufFacts& f);
Json nemotron_config(const GgufFacts& f);
Json phi2_config(const GgufFacts& f);
Json qwen2moe_config(const GgufFacts& f);
Json smollm3_config(const GgufFacts& f);
Json stablelm_config(const GgufFacts& f);
Json starcoder2_config(const GgufFacts& f);

}  // namespace qkv::gguf_configs
