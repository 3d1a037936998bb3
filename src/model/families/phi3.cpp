// Phi-3: Llama with W_Q, W_K, W_V in one tensor, and gate and up of the feed-forward in another.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec phi3_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  for (LayerSpec& layer : s.decoder.layers) layer.attention.window = c.whole({"sliding_window"}, 0);
  for (LayerSpec& layer : s.decoder.layers) layer.dropout = c.probability({"resid_pdrop"}, 0);
  s.decoder.embedding_dropout = c.probability({"embd_pdrop"}, 0);
  return s;
}

void phi3_names(TensorNames& list) {
  llama_like_ends(list);
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "model.layers." + i + ".", layer = "layers." + i + ".";
    llama_like_norms(list, file, layer);
    list.fused(file + "self_attn.qkv_proj", {layer + "attn.q", layer + "attn.k", layer + "attn.v"});
    list.linear(file + "self_attn.o_proj", layer + "attn.o");
    list.fused(file + "mlp.gate_up_proj", {layer + "mlp.gate", layer + "mlp.up"});
    list.linear(file + "mlp.down_proj", layer + "mlp.down");
  });
}

}  // namespace

const Family phi3{.name = "phi3",
                  .architecture = "Phi3ForCausalLM",
                  .known_as = "Phi-3 mini and medium, Phi-4",
                  .spec = phi3_spec,
                  .names = phi3_names,
                  .defaults = R"({"rms_norm_eps": 1e-5, "original_max_position_embeddings": 4096})"};

}  // namespace qkv::families
