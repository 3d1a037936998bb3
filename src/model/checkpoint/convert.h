// A model from one form into another: Hugging Face folders and GGUF files, in any direction.
#pragma once

#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct ConvertOptions {
  enum class To : uint8_t { by_name, hugging_face, gguf } to = To::by_name;  // by_name: GGUF if it ends in .gguf
  std::string dtype;  // "F32", "BF16", "F16", or for GGUF "Q8_0"; empty keeps what the model has
  WrittenSoFar progress;
};

// Weights pass through one by one, `to` appears whole or not at all, and nothing is overwritten. Returns what whoever
// asked should know, a line each.
std::vector<std::string> convert_model(const std::filesystem::path& from, const std::filesystem::path& to,
                                       const ConvertOptions& options);

// What belongs to a model beside its weights and config: tokenizer files and the like.
std::vector<std::filesystem::path> files_along(const std::filesystem::path& folder);

}  // namespace qkv
