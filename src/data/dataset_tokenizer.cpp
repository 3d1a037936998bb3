#include "data/dataset_tokenizer.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"

namespace qkv {
namespace {

// Such letters are cut anew each time by the formatter.
// clang-format off
constexpr std::string_view kProbe =
    "The cats' 12345 éclairs aren't here...  \n\t你好，世界！它们不在这里。 Ünïcödé １２ 👩‍👩‍👧 HTTPServer_v2 "
    "= "
    "{x: "
    "-0.5};";
// clang-format on

void add(Sha256& sum, std::string_view text) {
  const uint64_t size = text.size();
  sum.update(std::as_bytes(std::span(&size, 1)));
  sum.update(std::as_bytes(std::span(text)));
}

}  // namespace

DocumentTokens document_tokens(const Tokenizer& tokenizer) {
  const std::vector<int32_t> plain = tokenizer.encode("a", {.add_specials = false}), full = tokenizer.encode("a");
  const auto at = std::search(full.begin(), full.end(), plain.begin(), plain.end());
  const auto before = at - full.begin(), behind = std::ssize(full) - before - std::ssize(plain);
  QKV_CHECK(at != full.end() && before <= 1 && behind <= 1, tokenizer.what(), " puts ", before, " tokens before and ",
            behind, " behind a text, but one of each is the most", Hint("pack with a tokenizer of one language"));
  DocumentTokens around;
  if (before == 1) around.begin = full.front();
  around.end = behind == 1 ? std::optional(full.back()) : tokenizer.named().eos;
  return around;
}

std::string fingerprint(const Tokenizer& tokenizer) {
  Sha256 sum;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) add(sum, tokenizer.has(id) ? tokenizer.token(id) : "");
  const std::vector<int32_t> ids = tokenizer.encode(kProbe);
  sum.update(std::as_bytes(std::span(ids)));
  return sum.hex();
}

}  // namespace qkv
