// Marian: the translation models of Helsinki-NLP; sinusoidal positions, one or two vocabularies.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec marian_spec(const Config& c) {
  return bart_like(c, {.positions = {.kind = PositionSpec::Kind::sinusoidal}});
}

}  // namespace

const Family marian{.name = "marian",
                    .architecture = "MarianMTModel",
                    .known_as = "Opus-MT, translation between two languages",
                    .spec = marian_spec,
                    .names = bart_like_names};

}  // namespace qkv::families
