#include "text/tokenizer/tokenizer.h"

#include <utility>

#include "text/tokenizer/models/unknown_runs.h"
#include "text/tokenizer/tokenizer_impl.h"

namespace qkv {

Tokenizer::Tokenizer(TokenizerParts parts) : impl_(std::make_shared<const Impl>(std::move(parts))) {}

Tokenizer Tokenizer::without_truncation() const {
  Tokenizer same = *this;
  same.keep_length_ = true;
  return same;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  Encoding first = impl_->ids_only(text, options), second;
  if (options.second) second = impl_->ids_only(*options.second, options);
  return impl_->parts.post
      .apply({.first = &first,
              .second = options.second ? &second : nullptr,
              .specials = options.add_specials,
              .with_offsets = false,
              .keep_length = keep_length_,
              .what = impl_->parts.what})
      .ids;
}

Encoding Tokenizer::encode_full(std::string_view text, EncodeOptions options) const {
  Encoding first = impl_->with_offsets(text, options), second;
  if (options.second) second = impl_->with_offsets(*options.second, options);
  return impl_->parts.post.apply({.first = &first,
                                  .second = options.second ? &second : nullptr,
                                  .specials = options.add_specials,
                                  .with_offsets = true,
                                  .keep_length = keep_length_,
                                  .what = impl_->parts.what});
}

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::vector<std::string_view> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    const std::string_view token = impl_->token(id);
    if (!(options.skip_specials && impl_->is_special(id))) tokens.push_back(token);
  }
  return impl_->decoded(tokens);
}

std::unique_ptr<Decoder::Run> Tokenizer::start_decoding() const {
  return std::make_unique<Impl::LimitedRun>(*impl_->parts.decoder, impl_->parts.what);
}

std::string_view Tokenizer::token(int32_t id) const {
  return impl_->token(id);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const AddedToken* added = impl_->added.find(token)) return added->id;
  const int32_t id = impl_->parts.model->vocab().find(token);
  if (id < 0) return std::nullopt;
  return id;
}

std::string Tokenizer::bytes_of(int32_t id) const {
  const std::string token(impl_->token(id));
  if (const int byte = byte_of_token(token); byte >= 0 && impl_->parts.byte_tokens) {
    return std::string(1, static_cast<char>(byte));
  }
  // Decoded between two other tokens, because decoders treat the first and the last token specially.
  const std::string between = impl_->decoded({"a", token, "a"}), without = impl_->decoded({"a", "a"});
  if (between.size() < without.size()) return {};
  return between.substr(1, between.size() - without.size());
}

bool Tokenizer::has(int32_t id) const {
  return impl_->added.find(id) || impl_->parts.model->vocab().has(id);
}
bool Tokenizer::is_special(int32_t id) const {
  return impl_->is_special(id);
}
int32_t Tokenizer::vocab_size() const {
  return impl_->vocab_size;
}
const NamedTokens& Tokenizer::named() const {
  return impl_->parts.named;
}
const std::string& Tokenizer::what() const {
  return impl_->parts.what;
}

}  // namespace qkv
