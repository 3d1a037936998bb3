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
  add_deepseek_experts(c, s);
  for (LayerSpec& layer : s.decoder.layers) layer.attention = latent_attention(c, layer.attention);
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
    deepseek_experts_names(list, file, layer);
  });
  // The multi-token prediction layer, for training only.
  list.ignore("model.layers." + std::to_string(list.spec().decoder.layers.size()) + ".*");
}

}  // namespace

const Family deepseek_v3{
    .name = "deepseek_v3",
    .architecture = "DeepseekV3ForCausalLM",
    .known_as = "DeepSeek V3 and R1",
    .spec = deepseek_v3_spec,
    .names = deepseek_v3_names,
    .defaults = R"({"first_k_dense_replace": 3, "n_shared_experts": 1, "n_group": 8, "topk_group": 4,
"routed_scaling_factor": 2.5, "q_lora_rank": 1536})"};

}  // namespace qkv::families
