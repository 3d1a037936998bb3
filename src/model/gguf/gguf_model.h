// Writes a model as a GGUF file that llama.cpp loads.
#pragma once

#include <functional>

#include "io/gguf.h"
#include "io/gguf_write.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct GgufOutput {
  std::string dtype = "F32";  // of matrices: F32, F16, BF16 or Q8_0. Norms, biases and routers are always F32
  // Adds the tokenizer's keys and returns notes; this module knows no tokenizers. None: the file says it has none.
  std::function<std::vector<std::string>(GgufMetadata& metadata)> tokenizer = {};
  std::string name;  // general.name
  WriteProgress progress;
};

// Atomic; an existing file is not overwritten. An Error if GGUF cannot express the model: its metadata is first read
// back and compared with the spec. Returns notes for the user, one per line.
std::vector<std::string> write_gguf_model(const std::filesystem::path& path, const ModelSpec& spec,
                                          const Weights& weights, const GgufOutput& output);

// The same file with its matrices in another type (or "" for a plain copy); everything else stays as it is.
void rewrite_gguf(const std::filesystem::path& path, const Gguf& source, const std::string& dtype,
                  const WriteProgress& progress);

}  // namespace qkv
