// Qwen 2 and 2.5: Llama with biases on W_Q, W_K and W_V; some layers may have a sliding window.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec qwen2_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<bool> sliding = qwen_sliding(c);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    AttentionSpec& a = s.decoder.layers[i].attention;
    a.q_bias = a.k_bias = a.v_bias = true;
    if (sliding[i]) a.window = c.whole({"sliding_window"}, 0);
  }
  return s;
}

}  // namespace

const Family qwen2{.name = "qwen2",
                   .architecture = "Qwen2ForCausalLM",
                   .known_as = "Qwen 1.5, 2 and 2.5 0.5B to 72B",
                   .spec = qwen2_spec,
                   .names = llama_like_names,
                   .defaults = R"({"sliding_window": 4096, "max_window_layers": 28})"};

}  // namespace qkv::families
