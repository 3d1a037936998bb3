// A family: how to read its config.json and how its files name the weights. One file per family in this folder.
#pragma once

#include <span>

#include "base/function_ref.h"
#include "model/checkpoint/tensor_names.h"
#include "model/families/config.h"

namespace qkv {

struct Family {
  const char* name;                                      // the config's model_type
  const char* architecture;                              // its class in transformers
  const char* known_as;                                  // the models people know it by
  ModelSpec (*spec)(const Config& config);               // not yet validated
  void (*names)(TensorNames& list);                      // the tensors of a Hugging Face folder
  void (*names_otherwise)(TensorNames& list) = nullptr;  // another naming scheme, recognised by its first tensor
  // A JSON object: defaults of its config class in transformers, where they differ from those of the shared readers. They
  // apply to keys the config does not mention; null says "none". Widths, numbers of heads and token ids are not in it.
  const char* defaults = "{}";
};

std::span<const Family* const> all_families();
const Family& family_of(std::string_view model_type, std::string_view what);  // an Error that names the nearest

// With the family's defaults, all heads and experts.
ModelSpec read_unvalidated_spec(const Config& config);
// Reads and validates. Cut heads and experts are in qkv's own keys, see docs/add-a-family.md.
ModelSpec read_spec(const Config& config);

// --- shared by families (families/common.cpp) ------------------------------------------------------------------------

// A Llama-like decoder: RMS pre-norms, rotary positions, gated feed-forward, grouped-query attention.
ModelSpec llama_like(const Config& config);
void llama_like_names(TensorNames& list);
// The same, with more names for each layer: more(prefix in the file, prefix of the weights).
using LayerNames = FunctionRef<void(const std::string& file, const std::string& layer)>;
void llama_like_names(TensorNames& list, LayerNames more);
// Parts of it, for families that combine them differently.
void llama_like_ends(TensorNames& list);
void llama_like_attention(TensorNames& list, const std::string& file_layer, const std::string& layer);
void llama_like_norms(TensorNames& list, const std::string& file_layer, const std::string& layer);
void llama_like_feed(TensorNames& list, const std::string& file, const std::string& weight);
void llama_like_experts(TensorNames& list, const std::string& file, const std::string& weight);
// Experts of a layer in two tensors, as in transformers 5.
void packed_experts_names(TensorNames& list);

// A mixture of experts with sigmoid scores, a shared expert, and dense layers before: DeepSeek V3, GLM 4.5.
void add_deepseek_experts(const Config& config, ModelSpec& spec);
void deepseek_experts_names(TensorNames& list, const std::string& file_layer, const std::string& layer);
// Softmax experts in every `decoder_sparse_step`-th layer: Qwen.
void add_qwen_experts(const Config& config, ModelSpec& spec);

// A decoder with layer norms and a feed-forward without a gate, biases everywhere or nowhere: GPT-J, Phi, Falcon. The
// family says where the norms are and how positions are known.
ModelSpec gpt_like(const Config& config, bool bias, const char* activation);
void use_layer_norms(ModelSpec& spec, const NormSpec& norm);  // for what starts as Llama
// Layers that a list `no_rope_layers` of 0 and 1, or else every `no_rope_layer_interval`-th, leave without rotary
// positions: SmolLM 3, Llama 4. true: the layer has them.
std::vector<bool> read_rope_layers(const Config& config, int64_t layers, int64_t interval);

// Which layers have a sliding window: `layer_types`; else, if `use_sliding_window` is true, those that `slides` names.
std::vector<bool> read_used_windows(const Config& config, FunctionRef<bool(int64_t layer)> slides);
// Qwen: the layers from `max_window_layers` on.
std::vector<bool> qwen_sliding(const Config& config);
ModelSpec gemma_like(const Config& config);
void gemma_like_names(TensorNames& list);

template <class F>
void for_each_layer(const StackSpec& stack, F f) {  // f(number as text)
  for (size_t i = 0; i < stack.layers.size(); ++i) f(std::to_string(i));
}
// Repeats one layer.
std::vector<LayerSpec> same_layers(const Config& config, int64_t count, const LayerSpec& layer);

// An encoder-decoder with biases everywhere, as BART and Marian name it. What a family usually is; its config may say
// otherwise: normalize_before, add_final_layer_norm, normalize_embedding, static_position_embeddings, position_offset.
struct BartLike {
  bool norm_before = false, final_norm = false, embedding_norm = false;
  PositionSpec positions = {.kind = PositionSpec::Kind::learned, .offset = 2};
  bool head_bias = true;
};
ModelSpec bart_like(const Config& config, const BartLike& usual);
void bart_like_names(TensorNames& list);

// An encoder with a masked language model head; `root` is the first part of its names, the head has its own.
ModelSpec bert_like(const Config& config);
struct BertNames {
  std::string root, norm_weight = ".weight", norm_bias = ".bias";
};
void bert_like_names(TensorNames& list, const BertNames& names);

// torch's nn.MultiheadAttention: W_Q, W_K and W_V in one tensor.
void torch_attention_names(TensorNames& list, const std::string& file, const std::string& weight);

}  // namespace qkv
