// GLM 4: norms around the sublayers, interleaved rotary pairs on half a head, gate and up in one tensor.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec glm4_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  for (LayerSpec& layer : s.decoder.layers) {
    layer.place = NormPlace::around;
    layer.attention.out_bias = false;
    layer.attention.rope = read_rope(c, layer.attention.width, {.part = 0.5});
    layer.attention.rope->interleaved = true;
  }
  return s;
}

void glm4_names(TensorNames& list) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_attention(list, file, layer);
    list.linear(file + "input_layernorm", layer + "norm_attn");
    list.linear(file + "post_self_attn_layernorm", layer + "norm_attn_out");
    list.linear(file + "post_attention_layernorm", layer + "norm_mlp");
    list.linear(file + "post_mlp_layernorm", layer + "norm_mlp_out");
    list.fused(file + "mlp.gate_up_proj", {layer + "mlp.gate", layer + "mlp.up"});
    list.linear(file + "mlp.down_proj", layer + "mlp.down");
  });
}

}  // namespace

const Family glm4{.name = "glm4",
                  .architecture = "Glm4ForCausalLM",
                  .known_as = "GLM-4-0414 9B and 32B, GLM-Z1",
                  .spec = glm4_spec,
                  .names = glm4_names,
                  .defaults = R"({"rms_norm_eps": 1.5625e-7, "attention_bias": true})"};

}  // namespace qkv::families
