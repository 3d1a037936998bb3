#include "model/model.h"

namespace qkv {

EncoderOnly::EncoderOnly(ModelSpec spec, Weights weights)
    : Model(std::move(spec), std::move(weights)), stack_(spec_, Stack::encoder, weights_, ropes_) {}

Tensor EncoderOnly::states(Context& cx, const Input& input) const {
  return stack_.forward(cx, input.ids, {.rows = *input.rows});
}

Tensor EncoderOnly::read_out(Context& cx, const Tensor& stream) const {
  return head_.read_out(cx, stack_.final_norm(cx, stream));
}

Tensor EncoderOnly::next_states(Context&, const Tensor&, const KvPages&, const KvPages*) const {
  QKV_FAIL("a ", spec_.family, " reads whole texts and writes none",
           Hint("to generate text take a decoder or an encoder-decoder"));
}

}  // namespace qkv
