// StarCoder 2: Llama with layer norms, biases, and a feed-forward without a gate.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec starcoder2_spec(const Config& c) {
  ModelSpec s = gpt_like(c, c.flag({"use_bias"}, true), "gelu_pytorch_tanh");
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  for (LayerSpec& layer : s.decoder.layers) {
    layer.attention.rope = read_rope(c, layer.attention.width);
    layer.attention.window = c.whole({"sliding_window"}, 0);
  }
  return s;
}

void starcoder2_names(TensorNames& list) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    llama_like_attention(list, file, layer);
    list.linear(file + "mlp.c_fc", layer + "mlp.up");
    list.linear(file + "mlp.c_proj", layer + "mlp.down");
  });
}

}  // namespace

const Family starcoder2{.name = "starcoder2",
                        .architecture = "Starcoder2ForCausalLM",
                        .known_as = "StarCoder 2 3B to 15B",
                        .spec = starcoder2_spec,
                        .names = starcoder2_names,
                        .defaults = R"({"initializer_range": 0.018042})"};

}  // namespace qkv::families
