// BART: learned positions that start at row 2, a norm on the embeddings.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec bart_spec(const Config& c) {
  ModelSpec s = bart_like(c);
  for (StackSpec* stack : {&s.encoder, &s.decoder}) {
    stack->positions = {.kind = PositionSpec::Kind::learned, .count = s.context, .offset = 2};
    stack->embedding_norm = true;
  }
  return s;
}

}  // namespace

const Family bart{
    .name = "bart", .architecture = "BartForConditionalGeneration", .spec = bart_spec, .names = bart_like_names};

}  // namespace qkv::families
