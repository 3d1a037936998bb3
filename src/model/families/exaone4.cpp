// EXAONE 4: norms on the outputs and on the heads of q and k; where layers slide, the others have no positions.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec exaone4_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const auto layers = static_cast<int64_t>(s.decoder.layers.size());
  const int64_t window = c.whole({"sliding_window"}, 0);
  std::vector<bool> sliding = read_sliding(c, layers, nullptr);
  if (sliding.empty()) {
    const int64_t pattern = c.whole({"sliding_window_pattern"}, 0);
    for (int64_t i = 0; i < layers; ++i) sliding.push_back(pattern > 0 && (i + 1) % pattern != 0);
  }
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    layer.place = NormPlace::branch;
    layer.attention.qk_norm = AttentionSpec::QkNorm::per_head;
    if (window == 0) continue;
    if (sliding[i]) {
      layer.attention.window = window;
    } else {
      layer.attention.rope.reset();
    }
  }
  return s;
}

}  // namespace

const Family exaone4{.name = "exaone4",
                     .architecture = "Exaone4ForCausalLM",
                     .known_as = "EXAONE 4.0 1.2B and 32B",
                     .spec = exaone4_spec,
                     .names = llama_like_names,
                     .defaults = R"({"rms_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4})"};

}  // namespace qkv::families
