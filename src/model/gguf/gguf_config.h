// GGUF's metadata as the config.json it was made from, GGUF's names for the weights, and both ways back.
//
// Facts that the format leaves to its reader, as llama.cpp settles them:
// - W_Q and W_K of the architecture `llama` lie with the columns of a rotary pair side by side; no other's do.
// - Norms of Gemma are stored as 1 + w. They are read as they stand, and the config says so (kNormOffsetKey).
// - Llama 3's rope scaling is not said in keys: rope_freqs.weight holds what each pair's wavelength is stretched by.
//   Where the published rule with some power of two as first context gives these numbers, the config says llama3;
//   otherwise it says longrope with them, which computes the same.
// - Which layers slide, Gemma's attention scale, T5's output scale and gpt-oss' gate limit follow from the
// architecture.
#pragma once

#include <span>

#include "base/json.h"
#include "io/gguf.h"
#include "io/gguf_write.h"
#include "model/checkpoint/tensor_names.h"

namespace qkv {

// An Error that names the known architectures. `entries` are the file's tensors: some facts stand in their names and
// shapes alone. Bytes are read of rope factors only.
Json config_of(const Gguf& gguf, std::span<const StoredTensor> entries);
inline Json config_of(const Gguf& gguf) {
  return config_of(gguf, gguf.entries());
}

// What GGUF calls models of this family; an Error where it has no name for them.
std::string gguf_architecture(const ModelSpec& spec);
TensorNames gguf_names(const ModelSpec& spec);

// Keys that describe the model, without tokenizer and file type.
void add_model_keys(GgufMetadata& metadata, const ModelSpec& spec);

}  // namespace qkv
