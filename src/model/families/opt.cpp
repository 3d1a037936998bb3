// OPT: learned positions that start at row 2, ReLU, biases everywhere.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec opt_spec(const Config& c) {
  ModelSpec s = gpt_like(c, c.flag({"enable_bias"}, true), "relu");
  if (const int64_t width = c.whole({"word_embed_proj_dim"}, s.width); width != s.width) {
    c.fail("word_embed_proj_dim", "is " + std::to_string(width) + " but hidden_size is " + std::to_string(s.width),
           "embeddings of another width (OPT 350M) are not known; every other size of OPT is");
  }
  if (!c.flag({"layer_norm_elementwise_affine"}, true)) {
    c.fail("layer_norm_elementwise_affine", "is false", "norms without weights are not known here");
  }
  const bool before = c.flag({"do_layer_norm_before"}, true);
  for (LayerSpec& layer : s.decoder.layers) layer.place = before ? NormPlace::before : NormPlace::after;
  s.decoder.final_norm = before && !c.flag({"_remove_final_layer_norm"}, false);
  s.decoder.positions = {.kind = PositionSpec::Kind::learned, .count = s.context, .offset = 2};
  s.decoder.embedding_dropout = c.probability({"dropout"}, 0.1F);
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  return s;
}

void names_below(TensorNames& list, const std::string& root) {
  list.tensor(root + "embed_tokens.weight", "embed");
  list.tensor(root + "embed_positions.weight", "positions");
  for_each_layer(list.spec().decoder, [&](const std::string& i) {
    const std::string file = root + "layers." + i + ".", layer = "layers." + i + ".";
    for (const std::string which : {"q", "k", "v"}) {
      list.linear(file + "self_attn." + which + "_proj", layer + "attn." + which);
    }
    list.linear(file + "self_attn.out_proj", layer + "attn.o");
    list.linear(file + "self_attn_layer_norm", layer + "norm_attn");
    list.linear(file + "fc1", layer + "mlp.up");
    list.linear(file + "fc2", layer + "mlp.down");
    list.linear(file + "final_layer_norm", layer + "norm_mlp");
  });
  list.linear(root + "final_layer_norm", "norm_final");
  list.tensor("lm_head.weight", "head");
  list.ignore("lm_head.weight");
}

}  // namespace

const Family opt{.name = "opt",
                 .architecture = "OPTForCausalLM",
                 .known_as = "OPT 125M to 66B",
                 .spec = opt_spec,
                 .names = [](TensorNames& list) { names_below(list, "model.decoder."); },
                 .names_otherwise = [](TensorNames& list) { names_below(list, "decoder."); },
                 .defaults = R"({"max_position_embeddings": 2048, "dropout": 0.1})"};

}  // namespace qkv::families
