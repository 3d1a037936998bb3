// GLM 4.5: experts chosen as in DeepSeek V3, grouped-query attention with rotary on half a head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec glm4_moe_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  add_deepseek_experts(c, s);
  for (LayerSpec& layer : s.decoder.layers) {
    AttentionSpec& a = layer.attention;
    a.out_bias = false;
    a.rope = read_rope(c, a.width, {.part = 0.5});
    if (c.flag({"use_qk_norm"}, false)) a.qk_norm = AttentionSpec::QkNorm::per_head;
  }
  return s;
}

void glm4_moe_names(TensorNames& list) {
  llama_like_names(
      list, [&](const std::string& file, const std::string& layer) { deepseek_experts_names(list, file, layer); });
  // The multi-token prediction layer, for training only.
  list.ignore("model.layers." + std::to_string(list.spec().decoder.layers.size()) + ".*");
}

}  // namespace

const Family glm4_moe{.name = "glm4_moe",
                      .architecture = "Glm4MoeForCausalLM",
                      .known_as = "GLM-4.5, GLM-4.5-Air",
                      .spec = glm4_moe_spec,
                      .names = glm4_moe_names,
                      .defaults = R"({"rms_norm_eps": 1e-5, "first_k_dense_replace": 1, "n_shared_experts": 1})"};

}  // namespace qkv::families
