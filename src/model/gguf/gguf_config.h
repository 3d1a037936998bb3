// GGUF metadata as a Hugging Face config, GGUF names of the weights, and the reverse of both.
//
// What GGUF does not store explicitly, read as llama.cpp reads it:
// - W_Q and W_K of the architectures `llama`, `granite` and `smollm3` have interleaved rotary pairs; no other's do.
// - Gemma's norms are stored as 1 + w. They are kept so, and the config says it (kNormOffsetKey).
// - Llama 3's rope scaling is not in keys: rope_freqs.weight holds the factor on each pair's wavelength. If the llama3
//   rule with some power of two as original context gives these factors, the config says llama3; otherwise it says
//   longrope with these factors, which computes the same.
// - Which layers have a sliding window, Gemma's attention scale, T5's output scale and gpt-oss' gate limit follow from
//   the architecture.
#pragma once

#include <span>

#include "base/json.h"
#include "io/gguf.h"
#include "io/gguf_write.h"
#include "model/checkpoint/tensor_names.h"

namespace qkv {

// An unknown architecture is an Error that names the known ones. `entries` are the file's tensors: some facts follow
// only from their names and shapes. The only values read are rope factors.
Json config_of(const Gguf& gguf, std::span<const StoredTensor> entries);
inline Json config_of(const Gguf& gguf) {
  return config_of(gguf, gguf.entries());
}

// GGUF's architecture for this family; an Error if it has none.
std::string gguf_architecture(const ModelSpec& spec);
enum class ExpertTensors : uint8_t { one, apart };  // apart: a tensor for each expert, as before 2024
TensorNames gguf_names(const ModelSpec& spec, ExpertTensors experts = ExpertTensors::one);

// Keys that describe the model, without tokenizer and file type.
void add_model_keys(GgufMetadata& metadata, const ModelSpec& spec);

}  // namespace qkv
