// A tokenizer from a model folder as GGUF metadata, and the reverse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/gguf_write.h"

namespace qkv {

using Notes = std::vector<std::string>;  // for the user, one line each: what the other format cannot hold

// What the model's own config says.
struct ModelTokens {
  int64_t vocabulary = 0;
  std::optional<int32_t> bos = {}, pad = {};
  std::vector<int32_t> eos = {};
};

// Adds the tokenizer.* keys for the folder's tokenizer.json, or its SentencePiece tokenizer.model: byte-level BPE as
// "gpt2", BPE with byte fallback as "llama", Unigram as "t5"; with tokenizer_config.json and chat templates. If there is
// no tokenizer, or of a kind GGUF cannot hold, the keys say "none". An Error if it has tokens the model does not have.
Notes add_gguf_tokenizer(GgufMetadata& out, const std::filesystem::path& folder, const ModelTokens& model);

struct MadeFile {
  std::string name, text;
};

// tokenizer.json, tokenizer_config.json and generation_config.json of a GGUF file; none if it has no tokenizer.
std::vector<MadeFile> tokenizer_files_of(const Gguf& file, Notes& notes);

}  // namespace qkv
