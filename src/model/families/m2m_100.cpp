// M2M-100 and NLLB: norms before the sublayers and at the end, fairseq's sinusoids after the padding row.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec m2m_100_spec(const Config& c) {
  const int64_t padding = c.whole({"pad_token_id"}, 1);
  return bart_like(c, {.norm_before = true,
                       .final_norm = true,
                       .positions = {.kind = PositionSpec::Kind::sinusoidal,
                                     .offset = padding + 1,
                                     .padding = static_cast<int32_t>(padding),
                                     .order = ops::Sinusoid::fairseq},
                       .head_bias = false});
}

}  // namespace

const Family m2m_100{
    .name = "m2m_100",
    .architecture = "M2M100ForConditionalGeneration",
    .known_as = "M2M-100, NLLB-200: translation between many languages",
    .spec = m2m_100_spec,
    .names = bart_like_names,
    .defaults = R"({"activation_function": "relu", "attention_dropout": 0.1, "scale_embedding": true})"};

}  // namespace qkv::families
