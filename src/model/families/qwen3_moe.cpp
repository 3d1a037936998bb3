// Qwen 3 with experts.
#include <algorithm>

#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec qwen3_moe_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<int64_t> dense = c.wholes({"mlp_only_layers"});
  const int64_t step = std::max<int64_t>(c.whole({"decoder_sparse_step"}, 1), 1);
  const std::vector<bool> sliding = qwen_sliding(c);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    const auto number = static_cast<int64_t>(i);
    layer.attention.qk_norm = AttentionSpec::QkNorm::per_head;
    if (sliding[i]) layer.attention.window = c.whole({"sliding_window"}, 0);
    if ((number + 1) % step != 0 || std::find(dense.begin(), dense.end(), number) != dense.end()) continue;
    layer.feed.experts = ExpertsSpec{
        .count = c.whole({"num_experts", "num_local_experts"}),
        .width = c.whole({"moe_intermediate_size"}),
        .rule = {.top_k = c.whole({"num_experts_per_tok"}), .renormalise = c.flag({"norm_topk_prob"}, false)}};
  }
  return s;
}

void qwen3_moe_names(TensorNames& list) {
  llama_like_names(list, [&](const std::string& file, const std::string& layer) {
    llama_like_experts(list, file + "mlp.", layer + "mlp.");
  });
}

}  // namespace

const Family qwen3_moe{.name = "qwen3_moe",
                       .architecture = "Qwen3MoeForCausalLM",
                       .spec = qwen3_moe_spec,
                       .names = qwen3_moe_names,
                       .names_otherwise = packed_experts_names};

}  // namespace qkv::families
