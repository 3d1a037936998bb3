// Mixtral: Llama with a mixture of experts.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec mixtral_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  for (LayerSpec& layer : s.decoder.layers) {
    layer.attention.window = c.whole({"sliding_window"}, 0);
    layer.feed.experts = ExpertsSpec{.count = c.whole({"num_local_experts", "num_experts"}),
                                     .width = layer.feed.width,
                                     .rule = {.top_k = c.whole({"num_experts_per_tok"}), .renormalise = true}};
  }
  return s;
}

void mixtral_names(TensorNames& list) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    list.linear(file + "block_sparse_moe.gate", layer + "mlp.router");
    const std::string experts = file + "block_sparse_moe.experts.";
    list.experts(experts, ".w1.weight", layer + "mlp.experts.gate");
    list.experts(experts, ".w3.weight", layer + "mlp.experts.up");
    list.experts(experts, ".w2.weight", layer + "mlp.experts.down");
  });
}

}  // namespace

const Family mixtral{.name = "mixtral",
                     .architecture = "MixtralForCausalLM",
                     .known_as = "Mixtral 8x7B and 8x22B",
                     .spec = mixtral_spec,
                     .names = mixtral_names,
                     .names_otherwise = packed_experts_names,
                     .defaults = R"({"rms_norm_eps": 1e-5, "rope_theta": 1e6})"};

}  // namespace qkv::families
