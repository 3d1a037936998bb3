// One token's path through a model in numbers: queries, matching keys, head outputs and the residual stream.
#pragma once

#include "inspect/look/looking.h"

namespace qkv {

struct Match {
  int64_t key = 0;
  double qk = 0;          // q . k
  double score = 0;       // input of the softmax: scaled, and capped or biased if the model does so
  double share = 0;       // attention weight
  double value_norm = 0;  // |v W_O^h|
};

struct HeadStory {
  HeadId head;
  std::vector<float> q;  // [D]
  double scale = 1;
  std::vector<Match> matches;  // heaviest first
  double others = 0;           // attention weight of all other keys
  double nowhere = 0;          // attention weight of a learned sink
  int64_t other_keys = 0;
  double z_norm = 0, out_norm = 0;  // |z|, |z W_O^h|
};

// One attention: concatenated heads, then W_O.
struct AttentionStory {
  Place place;
  std::vector<HeadStory> heads;
  std::vector<float> concat, out;  // [H E], [C]
};

struct LayerStory {
  int64_t layer = 0;
  std::vector<AttentionStory> attentions;  // self-attention, and cross-attention if there is one
  const SeenLayer* seen = nullptr;         // stream and feed-forward
};

// Valid as long as `seen` is.
std::vector<LayerStory> story_of(const ModelSpec& spec, const Looked& seen);

}  // namespace qkv
