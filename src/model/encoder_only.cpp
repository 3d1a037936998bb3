#include "model/model.h"

namespace qkv {

EncoderOnly::EncoderOnly(ModelSpec spec, Weights weights)
    : Model(std::move(spec), std::move(weights)), stack_(spec_, Stack::encoder, weights_, ropes_) {}

Tensor EncoderOnly::states(Context& cx, const Input& input) const {
  return stack_.forward(cx, input.ids, *input.rows);
}

}  // namespace qkv
