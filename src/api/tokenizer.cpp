#include <qkv/tokenizer.h>

#include "api/inside.h"
#include "api/tokenizers.h"
#include "open/builtin_models.h"
#include "text/tokenizer/display_spans.h"

namespace qkv::v1 {

Tokenizer made_of(qkv::Tokenizer tokenizer) {
  return Tokenizer(std::make_shared<const Tokenizer::Impl>(Tokenizer::Impl{std::move(tokenizer)}));
}

const qkv::Tokenizer& inside(const Tokenizer& tokenizer) {
  return tokenizer.impl().tokenizer;
}

Tokenizer::Tokenizer(const std::string& path_or_name)
    : Tokenizer(made_of(qkv::Tokenizer::load(find_model(path_or_name)))) {}

const Tokenizer::Impl& Tokenizer::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "this tokenizer was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool plain) const {
  return impl().tokenizer.encode(text, {.add_specials = !plain});
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_specials) const {
  return impl().tokenizer.decode(ids, {.skip_specials = skip_specials});
}

std::string Tokenizer::token(int32_t id) const {
  return std::string(impl().tokenizer.token(id));
}

std::string Tokenizer::bytes(int32_t id) const {
  return impl().tokenizer.bytes_of(id);
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  return impl().tokenizer.id_of(token);
}

bool Tokenizer::has(int32_t id) const {
  return impl().tokenizer.has(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return impl().tokenizer.is_special(id);
}

int32_t Tokenizer::size() const {
  return impl().tokenizer.vocab_size();
}

std::vector<TokenSpan> Tokenizer::spans(std::span<const int32_t> ids) const {
  std::vector<TokenSpan> out;
  for (const DisplaySpan& span : display_spans(impl().tokenizer, ids).spans) {
    out.push_back({span.text, span.begin, span.end, span.first_token, span.token_count});
  }
  return out;
}

Tokenizer Model::tokenizer() const {
  return made_of(impl().open()->tokenizer());
}

Tokenizer Model::target_tokenizer() const {
  return made_of(impl().open()->target_tokenizer());
}

}  // namespace qkv::v1
