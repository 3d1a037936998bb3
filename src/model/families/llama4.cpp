// Llama 4 (text): three layers of four turn and see their own chunk, the fourth sees all without positions; experts read
// inputs weighted by a sigmoid score.
#include <algorithm>

#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec llama4_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  const auto layers = static_cast<int64_t>(s.decoder.layers.size());
  const std::vector<bool> turns = read_rope_layers(c, layers, 4);
  std::vector<bool> chunked = read_layer_kind(c, layers, "chunked_attention");
  if (chunked.empty()) chunked = turns;
  std::vector<int64_t> with_experts = c.wholes({"moe_layers"});
  const int64_t step = std::max<int64_t>(c.whole({"interleave_moe_layer_step"}, 1), 1);
  if (!c.has("moe_layers")) {
    for (int64_t i = step - 1; i < layers; i += step) with_experts.push_back(i);
  }
  const int64_t width = c.whole({"intermediate_size"});
  for (int64_t i = 0; i < layers; ++i) {
    LayerSpec& layer = s.decoder.layers[static_cast<size_t>(i)];
    AttentionSpec& a = layer.attention;
    if (chunked[static_cast<size_t>(i)]) a.chunk = c.whole({"attention_chunk_size"}, 8192);
    if (turns[static_cast<size_t>(i)]) {
      a.rope->interleaved = true;
      if (c.flag({"use_qk_norm"}, true)) a.qk_norm = AttentionSpec::QkNorm::unit;
    } else {
      a.rope.reset();
      if (c.flag({"attn_temperature_tuning"}, true)) {
        a.temperature = {.scale = c.number({"attn_scale"}, 0.1), .floor = c.number({"floor_scale"}, 8192)};
      }
    }
    layer.feed.width = c.whole({"intermediate_size_mlp"}, width);
    if (std::find(with_experts.begin(), with_experts.end(), i) == with_experts.end()) continue;
    layer.feed.experts = ExpertsSpec{.count = c.whole({"num_local_experts"}),
                                     .width = width,
                                     .rule = {.top_k = c.whole({"num_experts_per_tok"}), .sigmoid = true},
                                     .shared_width = width,
                                     .weigh_inputs = true};
  }
  return s;
}

void llama4_names(TensorNames& list) {
  using Layout = NamedTensor::Layout;
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".", feed = file + "feed_forward.";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    llama_like_feed(list, feed, layer + "mlp.");
    list.linear(feed + "router", layer + "mlp.router");
    const std::string experts = layer + "mlp.experts.";
    list.tensor_as({.name = feed + "experts.gate_up_proj",
                    .parts = {{experts + "gate"}, {experts + "up"}},
                    .layout = Layout::transposed});
    list.tensor_as({.name = feed + "experts.down_proj", .parts = {{experts + "down"}}, .layout = Layout::transposed});
    llama_like_feed(list, feed + "shared_expert.", layer + "mlp.shared.");
  });
}

}  // namespace

const Family llama4{.name = "llama4_text",
                    .architecture = "Llama4ForCausalLM",
                    .known_as = "Llama 4 Scout and Maverick, the text part",
                    .spec = llama4_spec,
                    .names = llama4_names,
                    .defaults = R"({"rms_norm_eps": 1e-5, "rope_theta": 500000, "intermediate_size_mlp": 16384})"};

}  // namespace qkv::families
