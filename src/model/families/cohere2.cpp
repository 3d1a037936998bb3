// Command R7B and A: one norm without bias for attention and feed-forward; layers with a sliding window turn, those without
// have no positions.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec cohere2_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  use_layer_norms(s, {.kind = NormSpec::Kind::layer, .eps = c.number({"layer_norm_eps"}, 1e-5), .bias = false});
  s.head = {.tied = c.flag({"tie_word_embeddings"}, true), .factor = c.number({"logit_scale"}, 0.0625)};
  const int64_t pattern = c.whole({"sliding_window_pattern"}, 4);
  const std::vector<bool> sliding = read_sliding(c, static_cast<int64_t>(s.decoder.layers.size()), nullptr);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    layer.place = NormPlace::shared;
    const bool slides =
        sliding.empty() ? (static_cast<int64_t>(i) + 1) % std::max<int64_t>(pattern, 1) != 0 : sliding[i];
    if (slides) {
      layer.attention.window = c.whole({"sliding_window"}, 4096);
      layer.attention.rope->interleaved = true;
    } else {
      layer.attention.rope.reset();
    }
  }
  return s;
}

}  // namespace

const Family cohere2{.name = "cohere2",
                     .architecture = "Cohere2ForCausalLM",
                     .known_as = "Command R7B, Command A",
                     .spec = cohere2_spec,
                     .names = llama_like_names};

}  // namespace qkv::families
