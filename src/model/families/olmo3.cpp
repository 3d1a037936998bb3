// OLMo 3: OLMo 2 with three layers of four in a sliding window.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec olmo3_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<bool> sliding = read_sliding(c, static_cast<int64_t>(s.decoder.layers.size()),
                                                 [](int64_t layer) { return (layer + 1) % 4 != 0; });
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    layer.place = NormPlace::branch;
    AttentionSpec& a = layer.attention;
    a.qk_norm = AttentionSpec::QkNorm::whole;
    a.rope = read_rope(c, a.width, {.layer_type = sliding[i] ? "sliding_attention" : "full_attention"});
    if (!sliding[i]) continue;
    a.window = c.whole({"sliding_window"}, 4096);
    if (!c.has("rope_parameters")) a.rope->scaling = {};  // older configs: only for full attention
  }
  return s;
}

}  // namespace

const Family olmo3{.name = "olmo3",
                   .architecture = "Olmo3ForCausalLM",
                   .known_as = "OLMo 3 7B and 32B",
                   .spec = olmo3_spec,
                   .names = llama_like_names,
                   .defaults = R"({"rms_norm_eps": 1e-5, "rope_theta": 500000})"};

}  // namespace qkv::families
