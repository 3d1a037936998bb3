// mBART: BART with norms before the sublayers and at the end.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec mbart_spec(const Config& c) {
  return bart_like(c, {.norm_before = true, .final_norm = true, .embedding_norm = true});
}

}  // namespace

const Family mbart{.name = "mbart",
                   .architecture = "MBartForConditionalGeneration",
                   .known_as = "mBART-25, mBART-50",
                   .spec = mbart_spec,
                   .names = bart_like_names,
                   .defaults = R"({"max_position_embeddings": 1024})"};

}  // namespace qkv::families
