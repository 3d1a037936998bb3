#include "model/model.h"

namespace qkv {

DecoderOnly::DecoderOnly(ModelSpec spec, Weights weights)
    : Model(std::move(spec), std::move(weights)), stack_(spec_, Stack::decoder, weights_, ropes_) {}

Tensor DecoderOnly::states(Context& cx, const Input& input) const {
  return stack_.forward(cx, input.ids, {.rows = *input.rows});
}

Tensor DecoderOnly::read_out(Context& cx, const Tensor& stream) const {
  return head_.read_out(cx, stack_.final_norm(cx, stream));
}

Tensor DecoderOnly::next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages*) const {
  return stack_.forward(cx, ids, {.rows = past.rows, .past = &past});
}

}  // namespace qkv
