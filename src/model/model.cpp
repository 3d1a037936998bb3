#include "model/model.h"

namespace qkv {

Model::Model(ModelSpec spec, Weights weights)
    : spec_(std::move(spec)), weights_(std::move(weights)), head_(spec_, weights_) {}

std::unique_ptr<Model> Model::make(ModelSpec spec, Weights weights) {
  switch (spec.kind) {
    case ModelSpec::Kind::decoder_only:
      return std::make_unique<DecoderOnly>(std::move(spec), std::move(weights));
    case ModelSpec::Kind::encoder_only:
      return std::make_unique<EncoderOnly>(std::move(spec), std::move(weights));
    case ModelSpec::Kind::encoder_decoder:
      return std::make_unique<EncoderDecoder>(std::move(spec), std::move(weights));
  }
  QKV_ASSERT(false, "unknown kind of model");
}

}  // namespace qkv
