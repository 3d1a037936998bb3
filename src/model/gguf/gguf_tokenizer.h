// tokenizer.json as GGUF metadata.
#pragma once

#include <filesystem>
#include <string>

#include "io/gguf_write.h"
#include "model/spec.h"

namespace qkv {

// Adds tokenizer.* keys from the folder's tokenizer.json and tokenizer_config.json: byte-level BPE as "gpt2", BPE with
// byte fallback as "llama". If there is no tokenizer, or of a kind GGUF cannot hold, the keys say "none". Returns a
// note for the user, or "". An Error if the tokenizer has tokens the model does not have.
std::string add_tokenizer_keys(GgufMetadata& metadata, const std::filesystem::path& folder, const ModelSpec& spec);

}  // namespace qkv
