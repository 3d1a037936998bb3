// BERT with its masked language model head.
#include "model/families/all.h"

namespace qkv::families {
namespace {

void names_with(TensorNames& list, const std::string& norm_weight, const std::string& norm_bias) {
  bert_like_names(list, {"bert.", norm_weight, norm_bias});
  const std::string head = "cls.predictions.";
  list.linear(head + "transform.dense", "head.dense");
  list.tensor(head + "transform.LayerNorm" + norm_weight, "head.norm");
  list.tensor(head + "transform.LayerNorm" + norm_bias, "head.norm.bias");
  list.tensor(head + "decoder.weight", "head");
  list.tensor(head + "bias", "head.bias");
  list.ignore(head + "decoder.*");
  list.ignore("cls.seq_relationship.*");
}

}  // namespace

const Family bert{.name = "bert",
                  .architecture = "BertForMaskedLM",
                  .known_as = "BERT base and large",
                  .spec = bert_like,
                  .names = [](TensorNames& list) { names_with(list, ".weight", ".bias"); },
                  // Names of norm weights and biases in the first public files.
                  .names_otherwise = [](TensorNames& list) { names_with(list, ".gamma", ".beta"); }};

}  // namespace qkv::families
