// GPT-J: attention and feed-forward of the same normed input, interleaved rotary pairs on part of a head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec gptj_spec(const Config& c) {
  ModelSpec s = gpt_like(c, false, "gelu_new");
  s.head = {.tied = c.flag({"tie_word_embeddings"}, false), .bias = true};
  for (LayerSpec& layer : s.decoder.layers) {
    layer.place = NormPlace::shared;
    layer.feed.bias = true;
    layer.attention.rope = RopeSpec{.width = c.whole({"rotary_dim"}, layer.attention.width), .interleaved = true};
  }
  return s;
}

void gptj_names(TensorNames& list) {
  list.tensor("transformer.wte.weight", "embed");
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = "transformer.h." + i + ".", layer = "layers." + i + ".";
    for (const std::string which : {"q", "k", "v"}) {
      list.linear(file + "attn." + which + "_proj", layer + "attn." + which);
    }
    list.linear(file + "attn.out_proj", layer + "attn.o");
    list.linear(file + "ln_1", layer + "norm_attn");
    list.linear(file + "mlp.fc_in", layer + "mlp.up");
    list.linear(file + "mlp.fc_out", layer + "mlp.down");
  });
  list.linear("transformer.ln_f", "norm_final");
  list.linear("lm_head", "head");
  list.ignore("*.attn.bias");  // the causal mask, as a buffer
  list.ignore("*.attn.masked_bias");
  list.ignore("*.attn.embed_positions");
}

}  // namespace

const Family gptj{.name = "gptj",
                  .architecture = "GPTJForCausalLM",
                  .known_as = "GPT-J 6B",
                  .spec = gptj_spec,
                  .names = gptj_names,
                  .defaults = R"({"rotary_dim": 64})"};

}  // namespace qkv::families
