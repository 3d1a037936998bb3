#include "model/model.h"

namespace qkv {

EncoderDecoder::EncoderDecoder(ModelSpec spec, Weights weights)
    : Model(std::move(spec), std::move(weights)),
      encoder_(spec_, Stack::encoder, weights_, ropes_),
      decoder_(spec_, Stack::decoder, weights_, ropes_) {}

Tensor EncoderDecoder::encode(Context& cx, const Tensor& source_ids, const Rows& source_rows) const {
  return encoder_.forward(cx, source_ids, {.rows = source_rows});
}

void EncoderDecoder::cache_source(Context& cx, const Tensor& source_ids, const Rows& source_rows,
                                  const KvPages& memory) const {
  decoder_.cache_source(cx, as_operand(cx, encode(cx, source_ids, source_rows)), memory);
}

Tensor EncoderDecoder::states(Context& cx, const Input& input) const {
  QKV_CHECK(input.source_ids.defined(), "an encoder-decoder reads a source, but only ", input.ids,
            " target tokens were given", Hint("give source_ids and source_rows too"));
  const Tensor read = as_operand(cx, encode(cx, input.source_ids, *input.source_rows));
  const Memory memory{.states = read, .rows = Rows::cross(cx, *input.rows, *input.source_rows)};
  return decoder_.forward(cx, input.ids, {.rows = *input.rows, .memory = &memory});
}

Tensor EncoderDecoder::read_out(Context& cx, const Tensor& stream) const {
  return head_.read_out(cx, decoder_.final_norm(cx, stream));
}

Tensor EncoderDecoder::next_states(Context& cx, const Tensor& ids, const KvPages& past, const KvPages* memory) const {
  const Memory read{.pages = memory};
  return decoder_.forward(cx, ids, {.rows = past.rows, .past = &past, .memory = &read});
}

}  // namespace qkv
