#include "api/one_token.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "inspect/texts/shown_tokens.h"
#include "text/unicode/utf8.h"

namespace qkv::v1 {
namespace {

constexpr size_t kMaxShown = 8;

std::optional<int32_t> number_in(std::string_view text) {
  int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

std::optional<int32_t> numbered(const TokenNaming& naming, std::string_view text) {
  if (text.starts_with('#')) return number_in(text.substr(1));
  return naming.ids || naming.tokenizer == nullptr ? number_in(text) : std::nullopt;
}

}  // namespace

int32_t one_token(const TokenNaming& naming, const char* flag, const std::string& text) {
  if (const std::optional<int32_t> id = numbered(naming, text)) return *id;
  QKV_CHECK(!naming.ids, "with --ids ", flag, " is a token id, but there is ", printable(text),
            Hint("for example  ", flag, " 403"));
  QKV_CHECK(naming.tokenizer != nullptr, flag, " is ", printable(text), ", but the model has no tokenizer",
            Hint("name the token by its number:  ", flag, " 403"));
  const std::vector<int32_t> ids = naming.tokenizer->encode(text, {.add_specials = false});
  if (ids.size() == 1) return ids.front();
  QKV_CHECK(!ids.empty(), flag, " has no tokens", Hint("give one token, as  ", flag, " \" mat\""));
  std::string parts;
  for (size_t i = 0; i < ids.size() && i < kMaxShown; ++i) {
    parts +=
        (i > 0 ? " " : "") + ("#" + std::to_string(ids[i])) + " " + printable(token_text(*naming.tokenizer, ids[i]));
  }
  if (ids.size() > kMaxShown) parts += " ...";
  QKV_FAIL(flag, " ", printable(text), " is ", ids.size(), " tokens: ", parts,
           Hint("the model guesses one token at a time; name one by its number, the first with  ", flag, " '#",
                ids.front(), "'"));
}

std::string token_argument(const TokenNaming& naming, int32_t id) {
  if (naming.ids) return std::to_string(id);
  const std::string number = "#" + std::to_string(id);
  if (naming.tokenizer == nullptr || !naming.tokenizer->has(id)) return number;
  const std::string text = token_text(*naming.tokenizer, id);
  const bool same = !text.empty() && is_utf8(text) && text.find('\0') == std::string::npos && !numbered(naming, text) &&
                    naming.tokenizer->encode(text, {.add_specials = false}) == std::vector<int32_t>{id};
  return same ? text : number;
}

}  // namespace qkv::v1
