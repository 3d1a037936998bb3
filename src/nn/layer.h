// One layer: attention and feed-forward on the residual stream.
#pragma once

#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace qkv {

// The encoder's output, for cross attention: its states, or the keys and values cached from them.
struct Memory {
  Tensor states;  // [M, C]
  Rows rows;      // the decoder's rows against the encoder's
  const KvPages* pages = nullptr;
};

// What a pass gives its layers beside the stream.
struct Pass {
  const Rows& rows;
  const KvPages* past = nullptr;  // the KV cache: these rows' keys and values are appended
  const Memory* memory = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;
  // [N, C] -> [N, C]. Without a tape and a probe the result may overwrite x.
  virtual Tensor forward(Context& cx, Tensor x, const Pass& pass) const = 0;

  // Keys and values of the encoder's output into the cache that later passes have as memory.pages.
  virtual void cache_source(Context& cx, const Tensor& states, const KvPages& pages) const = 0;

  // `names.name` is the layer's prefix, "layers.3."
  static std::unique_ptr<Layer> make(const LayerSpec& spec, Place place, const Weights& weights,
                                     const Attention::Names& names, Ropes& ropes);
};

}  // namespace qkv
