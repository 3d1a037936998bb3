// RoBERTa: BERT whose positions start after the row of the padding token.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec roberta_spec(const Config& c) {
  ModelSpec s = bert_like(c);
  const int64_t padding = c.whole({"pad_token_id"}, 1);
  s.context -= padding + 1;
  s.encoder.positions.count = s.context;
  s.encoder.positions.offset = padding + 1;
  s.encoder.positions.padding = static_cast<int32_t>(padding);
  return s;
}

void roberta_names(TensorNames& list) {
  bert_like_names(list, {"roberta."});
  list.linear("lm_head.dense", "head.dense");
  list.linear("lm_head.layer_norm", "head.norm");
  list.tensor("lm_head.decoder.weight", "head");
  list.tensor("lm_head.bias", "head.bias");
  list.ignore("lm_head.decoder.*");
}

}  // namespace

const Family roberta{.name = "roberta",
                     .architecture = "RobertaForMaskedLM",
                     .known_as = "RoBERTa base and large",
                     .spec = roberta_spec,
                     .names = roberta_names};

}  // namespace qkv::families
