// tokenizer.json as the keys llama.cpp wants.
#pragma once

#include <filesystem>
#include <string>

#include "io/gguf_write.h"
#include "model/spec.h"

namespace qkv {

// Adds tokenizer.* keys from the folder's tokenizer.json and tokenizer_config.json: byte-level BPE as "gpt2", BPE with
// byte fallback as "llama". Where there is none, or of a kind GGUF cannot hold, the keys say "none". Returns what
// whoever asked should know, or "". An Error if the tokenizer names tokens the model does not have.
std::string add_tokenizer_keys(GgufMetadata& metadata, const std::filesystem::path& folder, const ModelSpec& spec);

}  // namespace qkv
