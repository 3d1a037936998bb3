// Gemma 2: norms before and after the sublayers that multiply by 1 + w, soft caps, a sliding window in every other
// layer.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gemma2_spec(const Config& c) {
  ModelSpec s = gemma_like(c);
  const std::vector<bool> sliding =
      read_sliding(c, static_cast<int64_t>(s.decoder.layers.size()), [](int64_t layer) { return layer % 2 == 0; });
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    if (sliding[i]) s.decoder.layers[i].attention.window = c.whole({"sliding_window"}, 4096);
  }
  return s;
}

}  // namespace

const Family gemma2{
    .name = "gemma2",
    .architecture = "Gemma2ForCausalLM",
    .known_as = "Gemma 2 2B, 9B, 27B",
    .spec = gemma2_spec,
    .names = gemma_like_names,
    .defaults = R"({"query_pre_attn_scalar": 256, "attn_logit_softcapping": 50, "final_logit_softcapping": 30})"};

}  // namespace qkv::families
