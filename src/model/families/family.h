// A family: how its config.json reads and how its files name their weights. One file each in families/.
#pragma once

#include <span>

#include "model/checkpoint/tensor_names.h"
#include "model/families/config.h"

namespace qkv {

struct Family {
  const char* name;                         // the config's model_type
  const char* architecture;                 // what transformers calls the class
  ModelSpec (*spec)(const Config& config);  // not yet validated
  void (*names)(TensorNames& list);         // the tensors of a Hugging Face folder
  void (*names_otherwise)(TensorNames& list) =
      nullptr;  // another spelling that files come in; told apart by its first tensor
};

std::span<const Family* const> all_families();
const Family& family_of(const std::string& model_type, const std::string& what);  // an Error that names the known ones

// Reads and checks. `heads` beyond what the family can say stand in qkv's own key, see docs/add-a-family.md.
ModelSpec read_spec(const Config& config);

// --- what many families share (families/common.cpp) -----------------------------------------------------------------

// A decoder of the Llama kind: RMS norms before the branches, rotary positions, a gated feed-forward, grouped heads.
ModelSpec llama_like(const Config& config);
void llama_like_names(TensorNames& list);
// The parts of it that mixes of known parts put together anew.
void llama_like_ends(TensorNames& list);
void llama_like_attention(TensorNames& list, const std::string& file_layer, const std::string& layer);
void llama_like_norms(TensorNames& list, const std::string& file_layer, const std::string& layer);
void llama_like_feed(TensorNames& list, const std::string& file, const std::string& weight);
void llama_like_experts(TensorNames& list, const std::string& file, const std::string& weight);
// Experts of a layer in two tensors, as transformers 5 holds them in memory.
void packed_experts_names(TensorNames& list);

std::vector<bool> qwen_sliding(const Config& config);  // the layers from `max_window_layers` on, if it says so at all
ModelSpec gemma_like(const Config& config);
void gemma_like_names(TensorNames& list);

template <class F>
void for_each_layer(const StackSpec& stack, F f) {  // f(number as text)
  for (size_t i = 0; i < stack.layers.size(); ++i) f(std::to_string(i));
}
// Repeats one layer.
std::vector<LayerSpec> same_layers(const Config& config, int64_t count, const LayerSpec& layer);

// An encoder-decoder with biases everywhere, as BART and Marian write it.
ModelSpec bart_like(const Config& config);
void bart_like_names(TensorNames& list);

// torch's nn.MultiheadAttention: W_Q, W_K and W_V in one.
void torch_attention_names(TensorNames& list, const std::string& file, const std::string& weight);

}  // namespace qkv
