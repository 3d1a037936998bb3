// All families; family.cpp has the list.
#pragma once

#include "model/families/family.h"

namespace qkv::families {

extern const Family bart, bert, deepseek_v3, gemma2, gemma3, gpt2, gpt_neox, gpt_oss, llama, marian, mistral, mixtral,
    olmo2, phi3, qwen2, qwen3, qwen3_moe, t5, transformer;

}  // namespace qkv::families
