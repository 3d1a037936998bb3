// Converts models between Hugging Face folders and GGUF files.
#pragma once

#include <functional>
#include <map>

#include "io/gguf_write.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct ConvertOptions {
  enum class To : uint8_t { by_name, hugging_face, gguf } to = To::by_name;  // by_name: GGUF if it ends in .gguf
  std::string dtype;  // "F32", "BF16", "F16", or for GGUF "Q8_0"; empty keeps what the model has
  WriteProgress progress;
  // The tokenizer's part, which this module does not know; src/open/convert_tokenizer.h sets both. They return notes.
  using Notes = std::vector<std::string>;
  std::function<Notes(GgufMetadata& out, const std::filesystem::path& folder, const ModelSpec& spec)> tokenizer_keys =
      {};
  std::function<Notes(const Gguf& file, std::map<std::string, std::string>& made)> tokenizer_files = {};
};

// One weight in memory at a time. Atomic; an existing `to` is not overwritten. Returns notes for the user, one per
// line.
std::vector<std::string> convert_model(const std::filesystem::path& from, const std::filesystem::path& to,
                                       const ConvertOptions& options);

// A link in a model folder must not bring files from elsewhere into what is made of it: an Error if `file` is one that
// leads out of `folder`. Links of Hugging Face's cache, from snapshots/ to blobs/, are good.
void check_link_stays(const std::filesystem::path& folder, const std::filesystem::path& file);

// Files of a model folder beside weights and config: the tokenizer etc.
std::vector<std::filesystem::path> companion_files(const std::filesystem::path& folder);

}  // namespace qkv
