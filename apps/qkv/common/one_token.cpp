#include "common/one_token.h"

#include "base/error.h"
#include "base/printable.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv::app {

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

}  // namespace qkv::app
