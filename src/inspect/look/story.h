// The whole way of one token through a model, in real numbers: what its heads ask, who matches, what they bring, and
// what becomes of the stream.
#pragma once

#include "inspect/look/looking.h"

namespace qkv {

struct Match {
  int64_t key = 0;
  double qk = 0;          // q . k
  double score = 0;       // what enters the softmax: times the scale, capped or biased where the model does so
  double share = 0;       // what leaves it
  double value_norm = 0;  // |v W_O^h|: what it could bring
};

struct HeadStory {
  HeadId head;
  std::vector<float> q;  // [D]
  double scale = 1;
  std::vector<Match> matches;  // heaviest first
  double others = 0;           // share of all other keys
  double nowhere = 0;          // share that went to no key: a sink's
  int64_t other_keys = 0;
  double z_norm = 0, out_norm = 0;  // |z|, |z W_O^h|
};

// One attention: heads side by side, then W_O.
struct AttentionStory {
  Place place;
  std::vector<HeadStory> heads;
  std::vector<float> concat, out;  // [H E], [C]
};

struct LayerStory {
  int64_t layer = 0;
  std::vector<AttentionStory> attentions;  // its own; of a decoder that looks at a source, also that
  const SeenLayer* seen = nullptr;         // stream and feed-forward
};

// Valid as long as `seen` is.
std::vector<LayerStory> story_of(const ModelSpec& spec, const Looked& seen);

}  // namespace qkv
