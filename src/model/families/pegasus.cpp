// Pegasus: norms before the sublayers and at the end. Its sinusoidal positions are stored, unless an older config says
// static_position_embeddings.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec pegasus_spec(const Config& c) {
  return bart_like(c, {.norm_before = true, .final_norm = true, .positions = {.kind = PositionSpec::Kind::learned}});
}

}  // namespace

const Family pegasus{.name = "pegasus",
                     .architecture = "PegasusForConditionalGeneration",
                     .known_as = "Pegasus, summaries",
                     .spec = pegasus_spec,
                     .names = bart_like_names,
                     .defaults = R"({"max_position_embeddings": 1024})"};

}  // namespace qkv::families
