// Mixtures of experts that several families have.
#include <algorithm>

#include "model/families/family.h"

namespace qkv {

void add_deepseek_experts(const Config& c, ModelSpec& spec) {
  const int64_t width = c.whole({"moe_intermediate_size"});
  for (int64_t i = std::max<int64_t>(c.whole({"first_k_dense_replace"}, 0), 0);
       i < static_cast<int64_t>(spec.decoder.layers.size()); ++i) {
    spec.decoder.layers[static_cast<size_t>(i)].feed.experts =
        ExpertsSpec{.count = c.whole({"n_routed_experts", "num_local_experts"}),
                    .width = width,
                    .rule = {.top_k = c.whole({"num_experts_per_tok"}),
                             .sigmoid = true,
                             .renormalise = c.flag({"norm_topk_prob"}, true),
                             .scaling = c.number({"routed_scaling_factor"}, 1),
                             .groups = c.whole({"n_group"}, 1),
                             .top_groups = c.whole({"topk_group"}, 1)},
                    .shared_width = width * c.whole({"n_shared_experts"}, 0),
                    .correction = true};
  }
}

void deepseek_experts_names(TensorNames& list, const std::string& file_layer, const std::string& layer) {
  llama_like_experts(list, file_layer + "mlp.", layer + "mlp.");
  list.tensor(file_layer + "mlp.gate.e_score_correction_bias", layer + "mlp.router.correction");
  llama_like_feed(list, file_layer + "mlp.shared_experts.", layer + "mlp.shared.");
}

void add_qwen_experts(const Config& c, ModelSpec& spec) {
  const std::vector<int64_t> dense = c.wholes({"mlp_only_layers"});
  const int64_t step = std::max<int64_t>(c.whole({"decoder_sparse_step"}, 1), 1);
  for (int64_t i = 0; i < static_cast<int64_t>(spec.decoder.layers.size()); ++i) {
    if ((i + 1) % step != 0 || std::find(dense.begin(), dense.end(), i) != dense.end()) continue;
    spec.decoder.layers[static_cast<size_t>(i)].feed.experts = ExpertsSpec{
        .count = c.whole({"num_experts", "num_local_experts"}),
        .width = c.whole({"moe_intermediate_size"}),
        .rule = {.top_k = c.whole({"num_experts_per_tok"}), .renormalise = c.flag({"norm_topk_prob"}, false)}};
  }
}

}  // namespace qkv
