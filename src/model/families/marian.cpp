// Marian: the translation models of Helsinki-NLP; sinusoidal positions, one or two vocabularies.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec marian_spec(const Config& c) {
  ModelSpec s = bart_like(c);
  for (StackSpec* stack : {&s.encoder, &s.decoder}) stack->positions = {.kind = PositionSpec::Kind::sinusoidal};
  if (!c.flag({"share_encoder_decoder_embeddings"}, true)) s.source_vocabulary = c.whole({"vocab_size"});
  return s;
}

void marian_names(TensorNames& list) {
  bart_like_names(list);
  list.ignore("model.*.embed_positions.weight");  // computed
}

}  // namespace

const Family marian{.name = "marian", .architecture = "MarianMTModel", .spec = marian_spec, .names = marian_names};

}  // namespace qkv::families
