// All families; family.cpp has the list.
#pragma once

#include "model/families/family.h"

namespace qkv::families {

extern const Family bart, bert, bloom, cohere2, deepseek_v3, ernie4_5, exaone4, falcon, gemma2, gemma3, glm4, glm4_moe,
    gpt2, gpt_neox, gpt_oss, gptj, granite, llama, llama4, m2m_100, marian, mbart, mistral, mixtral, modernbert,
    nemotron, olmo2, olmo3, opt, pegasus, phi, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, roberta, smollm3, stablelm,
    starcoder2, t5, transformer;

}  // namespace qkv::families
