// Qwen 1.5 and 2 with experts: softmax experts, and a shared one behind a sigmoid gate.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec qwen2_moe_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  // Every other layer before `max_window_layers`.
  const int64_t end = c.whole({"max_window_layers"}, 0);
  const std::vector<bool> sliding = read_used_windows(c, [&](int64_t layer) { return layer % 2 == 0 && layer < end; });
  add_qwen_experts(c, s);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    AttentionSpec& a = layer.attention;
    a.q_bias = a.k_bias = a.v_bias = c.flag({"qkv_bias"}, true);
    if (sliding[i]) a.window = c.whole({"sliding_window"}, 0);
    if (!layer.feed.experts) continue;
    layer.feed.experts->shared_width = c.whole({"shared_expert_intermediate_size"});
    layer.feed.experts->shared_gate = true;
  }
  return s;
}

void shared_names(TensorNames& list, const std::string& file, const std::string& layer) {
  llama_like_feed(list, file + "mlp.shared_expert.", layer + "mlp.shared.");
  list.linear(file + "mlp.shared_expert_gate", layer + "mlp.shared_gate");
}

void qwen2_moe_names(TensorNames& list) {
  llama_like_names(list, [&](const std::string& file, const std::string& layer) {
    llama_like_experts(list, file + "mlp.", layer + "mlp.");
    shared_names(list, file, layer);
  });
}

}  // namespace

const Family qwen2_moe{.name = "qwen2_moe",
                       .architecture = "Qwen2MoeForCausalLM",
                       .known_as = "Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B",
                       .spec = qwen2_moe_spec,
                       .names = qwen2_moe_names,
                       .defaults = R"({"sliding_window": 4096, "max_window_layers": 28})"};

}  // namespace qkv::families
