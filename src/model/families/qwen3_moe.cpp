// Qwen 3 with experts.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec qwen3_moe_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<bool> sliding = qwen_sliding(c);
  add_qwen_experts(c, s);
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    AttentionSpec& a = s.decoder.layers[i].attention;
    a.qk_norm = AttentionSpec::QkNorm::per_head;
    if (sliding[i]) a.window = c.whole({"sliding_window"}, 0);
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
                       .known_as = "Qwen3-30B-A3B, Qwen3-235B-A22B",
                       .spec = qwen3_moe_spec,
                       .names = qwen3_moe_names,
                       .names_otherwise = packed_experts_names,
                       .defaults = R"({"sliding_window": 4096})"};

}  // namespace qkv::families
