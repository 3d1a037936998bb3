// Qwen 3: Llama with a norm on q and k of every head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec qwen3_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<bool> sliding = qwen_sliding(c);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    AttentionSpec& a = s.decoder.layers[i].attention;
    a.qk_norm = AttentionSpec::QkNorm::per_head;
    if (sliding[i]) a.window = c.whole({"sliding_window"}, 0);
  }
  return s;
}

}  // namespace

const Family qwen3{.name = "qwen3",
                   .architecture = "Qwen3ForCausalLM",
                   .known_as = "Qwen 3 0.6B to 32B",
                   .spec = qwen3_spec,
                   .names = llama_like_names,
                   .defaults = R"({"sliding_window": 4096, "max_window_layers": 28})"};

}  // namespace qkv::families
