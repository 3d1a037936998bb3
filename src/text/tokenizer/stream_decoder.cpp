#include "text/tokenizer/stream_decoder.h"

#include <utility>

#include "text/unicode/utf8.h"

namespace qkv {

StreamDecoder::StreamDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options), run_(tokenizer_.start_decoding()) {}

std::string StreamDecoder::add(int32_t id) {
  const std::string_view token = tokenizer_.token(id);
  if (options_.skip_specials && tokenizer_.is_special(id)) return {};
  run_->take({.text = std::string(token)}, [&](const Decoder::Part& part) { bytes_ += part.text; });
  return take_utf8(bytes_, MoreBytes::may_follow);
}

std::string StreamDecoder::flush() {
  run_->finish([&](const Decoder::Part& part) { bytes_ += part.text; });
  return take_utf8(bytes_, MoreBytes::no);
}

}  // namespace qkv
