// BART: learned positions that start at row 2, a norm on the embeddings.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec bart_spec(const Config& c) {
  return bart_like(c, {.embedding_norm = true});
}

}  // namespace

const Family bart{.name = "bart",
                  .architecture = "BartForConditionalGeneration",
                  .known_as = "BART base and large",
                  .spec = bart_spec,
                  .names = bart_like_names,
                  .defaults = R"({"max_position_embeddings": 1024})"};

}  // namespace qkv::families
