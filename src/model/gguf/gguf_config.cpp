#include "model/gguf/gguf_config.h"

#include "base/error.h"
#include "base/printable.h"
#include "model/families/family.h"
#include "model/gguf/gguf_configs.h"

namespace qkv {
namespace {

struct Architecture {
  const char* name;
  Json (*config)(const GgufFacts& f);
};

constexpr Architecture kArchitectures[] = {
    {"bert", gguf_configs::bert_config},
    {"bloom", gguf_configs::bloom_config},
    {"cohere2", gguf_configs::cohere2_config},
    {"deepseek2", gguf_configs::deepseek2_config},
    {"ernie4_5", gguf_configs::ernie4_5_config},
    {"exaone4", gguf_configs::exaone4_config},
    {"falcon", gguf_configs::falcon_config},
    {"gemma2", gguf_configs::gemma2_config},
    {"gemma3", gguf_configs::gemma3_config},
    {"glm4", gguf_configs::glm4_config},
    {"glm4moe", gguf_configs::glm4moe_config},
    {"gpt-oss", gguf_configs::gpt_oss_config},
    {"gpt2", gguf_configs::gpt2_config},
    {"gptneox", gguf_configs::gptneox_config},
    {"granite", gguf_configs::granite_config},
    {"llama", gguf_configs::llama_config},
    {"nemotron", gguf_configs::nemotron_config},
    {"olmo2", gguf_configs::olmo2_config},
    {"phi2", gguf_configs::phi2_config},
    {"phi3", gguf_configs::phi3_config},
    {"qwen2", [](const GgufFacts& f) { return gguf_configs::qwen_config(f, "qwen2"); }},
    {"qwen2moe", gguf_configs::qwen2moe_config},
    {"qwen3", [](const GgufFacts& f) { return gguf_configs::qwen_config(f, "qwen3"); }},
    {"qwen3moe", gguf_configs::qwen3moe_config},
    {"smollm3", gguf_configs::smollm3_config},
    {"stablelm", gguf_configs::stablelm_config},
    {"starcoder2", gguf_configs::starcoder2_config},
    {"t5", gguf_configs::t5_config},
};

}  // namespace

Json config_of(const Gguf& gguf, std::span<const StoredTensor> entries) {
  const GgufFacts facts(gguf, entries);
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (facts.arch() == architecture.name) {
      gguf_configs::refuse_unknown_maths(facts);
      Json config = architecture.config(facts);
      config["architectures"] = {family_of(config["model_type"].get<std::string>(), gguf.name()).architecture};
      return config;
    }
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  QKV_FAIL(gguf.name(), ": is a model of the architecture ", printable(facts.arch()), ", which is not known",
           Hint("known are ", known));
}

}  // namespace qkv
