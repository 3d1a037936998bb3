// Parameter counts and memory needs of a model, from its spec alone.
#pragma once

#include <map>

#include "model/weight_list.h"

namespace qkv {

using PartCounts = std::map<Part, int64_t>;

// Layers of one stack with the same number of parameters in every part.
struct LayerGroup {
  Stack stack = Stack::decoder;
  std::vector<int64_t> layers;
  PartCounts parts;  // of one layer
  int64_t parameters = 0;
};

// Size of the KV cache, in numbers (multiply by the bytes of one).
struct CacheNeed {
  int64_t per_token = 0;         // of all layers, while the text is shorter than every window
  int64_t per_token_beyond = 0;  // once it is longer: layers with a window drop one for each they add
  int64_t at_context = 0;        // of one text as long as the context; 0 if that is unknown
  int64_t per_source_token = 0;  // of cross-attention: computed once from the encoder's output
  bool latent = false;           // the cache holds the latent vectors (LatentSpec)
};

struct TrainingNeed {
  int64_t state = 0;                                   // 16 bytes a parameter: f32 weight, gradient and AdamW's two
  int64_t activations = 0, sequences = 1, length = 0;  // of a bf16 step that recomputes nothing
};

struct ModelSummary {
  PartCounts parts;                // of the whole model
  PartCounts outside;              // of them, those outside layers
  std::vector<LayerGroup> groups;  // in the order of their first layer, the encoder's first
  int64_t parameters = 0;
  // Parameters used per token: of routed experts only the chosen ones, as published models count them.
  int64_t active = 0;
  int64_t f32 = 0, bf16 = 0, q8 = 0, q4 = 0;  // bytes; q8 and q4: matrices in 8.5 and 4.5 bits, vectors in f32
  CacheNeed cache;
  TrainingNeed training;

  bool has_experts() const { return parts.contains(Part::experts); }
};

ModelSummary summarise(const ModelSpec& spec);

// "layer 7", "layers 0-2", "layers 0, 2, 4, ..., 24"
std::string layers_text(const std::vector<int64_t>& layers);

}  // namespace qkv
