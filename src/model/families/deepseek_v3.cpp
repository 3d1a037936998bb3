// DeepSeek V3: latent attention, experts in groups chosen by sigmoid scores, a shared expert.
#include <cmath>

#include "model/families/all.h"

namespace qkv::families {
namespace {

AttentionSpec latent_attention(const Config& c, AttentionSpec a) {
  const LatentSpec latent{.q_rank = c.whole({"q_lora_rank"}, 0),
                          .kv_rank = c.whole({"kv_lora_rank"}),
                          .nope_width = c.whole({"qk_nope_head_dim"}),
                          .rope_width = c.whole({"qk_rope_head_dim"})};
  a.latent = latent;
  a.kv_heads = a.heads;
  a.width = latent.nope_width + latent.rope_width;
  a.value_width = c.whole({"v_head_dim"});
  a.v_bias = false;
  a.norm.eps = 1e-6;  // of the latents; the config's epsilon is for the other norms
  RopeSpec rope = read_rope(c, latent.rope_width);
  rope.first = latent.nope_width;
  rope.interleaved = c.flag({"rope_interleave"}, true);
  // YaRN also scales the attention scores.
  const double all = rope.scaling.mscale_all_dim, factor = rope.scaling.factor;
  const double sharper = all > 0 && factor > 1 ? 0.1 * all * std::log(factor) + 1 : 1;
  a.scale = sharper * sharper / std::sqrt(static_cast<double>(a.width));
  a.rope = rope;
  return a;
}

ModelSpec deepseek_v3_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const int64_t width = c.whole({"moe_intermediate_size"});
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    layer.attention = latent_attention(c, layer.attention);
    if (static_cast<int64_t>(i) < c.whole({"first_k_dense_replace"}, 0)) continue;
    layer.feed.experts = ExpertsSpec{.count = c.whole({"n_routed_experts", "num_local_experts"}),
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
  return s;
}

void deepseek_v3_names(TensorNames& list) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    for (const std::string which : {"q_a", "q_b", "kv_b"}) {
      list.linear(file + "self_attn." + which + "_proj", layer + "attn." + which);
    }
    list.linear(file + "self_attn.kv_a_proj_with_mqa", layer + "attn.kv_a");
    list.linear(file + "self_attn.q_a_layernorm", layer + "attn.q_a_norm");
    list.linear(file + "self_attn.kv_a_layernorm", layer + "attn.kv_a_norm");
    llama_like_feed(list, file + "mlp.", layer + "mlp.");
    llama_like_experts(list, file + "mlp.", layer + "mlp.");
    list.tensor(file + "mlp.gate.e_score_correction_bias", layer + "mlp.router.correction");
    llama_like_feed(list, file + "mlp.shared_experts.", layer + "mlp.shared.");
  });
  // The multi-token prediction layer, for training only.
  list.ignore("model.layers." + std::to_string(list.spec().decoder.layers.size()) + ".*");
}

}  // namespace

const Family deepseek_v3{.name = "deepseek_v3",
                         .architecture = "DeepseekV3ForCausalLM",
                         .spec = deepseek_v3_spec,
                         .names = deepseek_v3_names};

}  // namespace qkv::families
