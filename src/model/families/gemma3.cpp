// Gemma 3 (text): Gemma 2 with q and k norms; five layers with a sliding window and their own rotary base, then one
// with full attention.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gemma3_spec(const Config& c) {
  ModelSpec s = gemma_like(c);
  const int64_t pattern = c.whole({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  std::vector<bool> sliding = read_sliding(c, static_cast<int64_t>(s.decoder.layers.size()), nullptr);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    AttentionSpec& a = s.decoder.layers[i].attention;
    a.qk_norm = AttentionSpec::QkNorm::per_head;
    const bool slides = sliding.empty() ? pattern > 0 && (static_cast<int64_t>(i) + 1) % pattern != 0 : sliding[i];
    if (slides) a.window = c.whole({"sliding_window"}, 4096);
    a.rope = read_rope(c, a.width,
                       {.layer_type = slides ? "sliding_attention" : "full_attention",
                        .base = slides ? "rope_local_base_freq" : "rope_theta"});
    if (slides && !c.has("rope_parameters")) a.rope->scaling = {};  // older configs: only for full attention
  }
  return s;
}

}  // namespace

const Family gemma3{.name = "gemma3_text",
                    .architecture = "Gemma3ForCausalLM",
                    .known_as = "Gemma 3 1B, and the text part of 4B to 27B",
                    .spec = gemma3_spec,
                    .names = gemma_like_names,
                    .defaults = R"({"query_pre_attn_scalar": 256, "rope_theta": 1e6, "rope_local_base_freq": 10000})"};

}  // namespace qkv::families
