#include "common/one_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv::app {

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.has(id)) return "#" + std::to_string(id);
  if (tokenizer.is_special(id)) return std::string(tokenizer.token(id));
  const std::string bytes = tokenizer.bytes_of(id);
  if (is_utf8(bytes)) return bytes;
  std::string hex;
  for (const char c : bytes) hex += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  return hex;
}

int32_t one_token(const Tokenizer& tokenizer, const char* flag, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, {.add_specials = false});
  if (ids.size() == 1) return ids.front();
  QKV_CHECK(!ids.empty(), flag, " has no tokens", Hint("give one token, as  ", flag, " \" mat\""));
  std::string parts;
  for (const int32_t id : ids) parts += "[" + token_text(tokenizer, id) + "]";
  QKV_FAIL(flag, " ", printable(text), " is ", ids.size(), " tokens: ", printable(parts),
           Hint("the model guesses one token at a time: ask for the first,  ", flag, " ",
                printable(token_text(tokenizer, ids.front()))));
}

std::vector<int32_t> two_best(const std::vector<float>& logits) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto most = std::min<std::ptrdiff_t>(2, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + most, ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  ids.resize(static_cast<size_t>(most));
  return ids;
}

}  // namespace qkv::app
