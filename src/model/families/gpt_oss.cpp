// gpt-oss: biased experts with a clamped gate, a sink per head, a sliding window in every other layer.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gpt_oss_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const std::vector<bool> sliding =
      read_sliding(c, static_cast<int64_t>(s.decoder.layers.size()), [](int64_t layer) { return layer % 2 == 0; });
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    LayerSpec& layer = s.decoder.layers[i];
    layer.attention.sinks = true;
    if (sliding[i]) layer.attention.window = c.whole({"sliding_window"}, 128);
    layer.feed.act = ops::act::quick_gelu;
    layer.feed.gate_limit = static_cast<float>(c.number({"swiglu_limit"}, 7));
    layer.feed.gate_shift = 1;
    layer.feed.experts = ExpertsSpec{.count = c.whole({"num_local_experts"}),
                                     .width = layer.feed.width,
                                     .rule = {.top_k = c.whole({"num_experts_per_tok"}), .renormalise = true},
                                     .router_bias = true,
                                     .bias = true};
  }
  return s;
}

void gpt_oss_names(TensorNames& list) {
  using Layout = NamedTensor::Layout;
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    list.linear(file + "mlp.router", layer + "mlp.router");
    const std::string experts = file + "mlp.experts.", gate = layer + "mlp.experts.gate", up = layer + "mlp.experts.up",
                      down = layer + "mlp.experts.down";
    list.tensor_as({.name = experts + "gate_up_proj", .parts = {{gate}, {up}}, .layout = Layout::interleaved});
    list.tensor_as({.name = experts + "gate_up_proj_bias",
                    .parts = {{gate + ".bias"}, {up + ".bias"}},
                    .layout = Layout::interleaved});
    list.tensor_as({.name = experts + "down_proj", .parts = {{down}}, .layout = Layout::transposed});
    list.tensor(experts + "down_proj_bias", down + ".bias");
  });
}

}  // namespace

const Family gpt_oss{.name = "gpt_oss",
                     .architecture = "GptOssForCausalLM",
                     .known_as = "gpt-oss 20B and 120B",
                     .spec = gpt_oss_spec,
                     .names = gpt_oss_names,
                     .defaults = R"({"rms_norm_eps": 1e-5, "attention_bias": true, "rope_theta": 150000,
"rope_scaling": {"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false,
"original_max_position_embeddings": 4096}})"};

}  // namespace qkv::families
