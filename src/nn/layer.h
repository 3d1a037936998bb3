// One layer: attention and feed-forward on the residual stream.
#pragma once

#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace qkv {

// Where norms stand around a branch f of the stream x.
enum class NormPlace : uint8_t {
  before,    // x + f(norm(x))              GPT-2, Llama
  after,     // norm(x + f(x))              the 2017 Transformer, BERT
  branch,    // x + norm(f(x))              OLMo 2
  around,    // x + norm2(f(norm1(x)))      Gemma
  parallel,  // x + f(norm1(x)) + g(norm2(x)), both branches at once: GPT-NeoX
};

struct LayerSpec {
  AttentionSpec attention;
  std::optional<AttentionSpec> cross;  // a decoder that looks at an encoder
  FeedForwardSpec feed;
  NormPlace place = NormPlace::before;
  NormSpec norm;
  float dropout = 0;  // on what a branch brings
};

// What the encoder said, for decoders that look at it: its states, or the keys and values made of them before.
struct Memory {
  Tensor states;  // [M, C]
  Rows rows;      // the decoder's rows against the encoder's
  const KvPages* pages = nullptr;
};

// What a pass knows beside the stream.
struct Pass {
  const Rows& rows;
  const KvPages* past = nullptr;  // keys and values of the rows before; these rows' own are added
  const Memory* memory = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;
  // [N, C] -> same. Without a tape and a probe the sum may take x's place: the caller's stream is used up.
  virtual Tensor forward(Context& cx, Tensor x, const Pass& pass) const = 0;

  // Keys and values of what an encoder said, for passes that come.
  virtual void remember(Context& cx, const Tensor& states, const KvPages& pages) const = 0;

  // `names.name` is the layer's prefix, "layers.3."
  static std::unique_ptr<Layer> make(const LayerSpec& spec, Place place, const Weights& weights,
                                     const Attention::Names& names, Ropes& ropes);
};

}  // namespace qkv
