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
    if (c.has("rope_parameters")) {
      a.rope = read_rope(c, a.width, slides ? "sliding_attention" : "full_attention");
    } else if (slides) {  // older configs: scaling only for full attention
      a.rope = RopeSpec{.base = c.number({"rope_local_base_freq"}, 10000), .width = a.width};
    } else {
      a.rope = read_rope(c, a.width);
      a.rope->base = c.number({"rope_theta"}, 1e6);
    }
  }
  return s;
}

}  // namespace

const Family gemma3{.name = "gemma3_text",
                    .architecture = "Gemma3ForCausalLM",
                    .known_as = "Gemma 3 1B, and the text part of 4B to 27B",
                    .spec = gemma3_spec,
                    .names = gemma_like_names};

}  // namespace qkv::families
