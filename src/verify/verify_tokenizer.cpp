#include "verify/verify_tokenizer.h"

#include <utility>

#include "base/error.h"
#include "base/json_members.h"
#include "text/tokenizer/files/json_node.h"

namespace qkv {
namespace {

constexpr size_t kShown = 5;

Json pairs_of(const std::vector<Offset>& offsets) {
  Json list = Json::array();
  for (const Offset& offset : offsets) list.push_back({offset.begin, offset.end});
  return list;
}

// Bytes that may be invalid UTF-8, for comparing and showing.
Json text_of(std::string text) {
  return Json(std::move(text));
}

Json value_of(const Tokenizer& tokenizer, std::string_view text, const std::string& field,
              const std::vector<int32_t>& ids) {
  if (field == "ids") return ids;
  if (field == "ids_special") return tokenizer.encode(text);
  if (field == "tokens" || field == "pieces") return tokenizer.encode_full(text, {.add_specials = false}).tokens;
  if (field == "offsets") return pairs_of(tokenizer.encode_full(text, {.add_specials = false}).offsets);
  if (field == "decoded") return text_of(tokenizer.decode(ids));
  if (field == "decoded_skip") return text_of(tokenizer.decode(tokenizer.encode(text), {.skip_specials = true}));
  return nullptr;
}

}  // namespace

TokenizerVerdict verify_tokenizer(const Tokenizer& tokenizer, JsonText vectors, std::string_view what) {
  TokenizerVerdict verdict;
  scan_json_elements(vectors, what, [&](JsonText element) {
    const size_t i = verdict.cases;
    const std::string where = std::string(what) + ": [" + std::to_string(i) + "]";
    const Json json = parse_json(element, where);
    const JsonNode test(json, where);
    const std::string text = test.at("text").string();
    const std::vector<int32_t> ids = tokenizer.encode(text, {.add_specials = false});
    bool equal = true;
    for (const auto& [field, expected] : test.json().items()) {
      if (field == "text") continue;
      Json got = value_of(tokenizer, text, field, ids);
      QKV_CHECK(!got.is_null(), test.where(), ": unknown field '", field, "'",
                Hint("known are ids, ids_special, tokens, pieces, offsets, decoded, decoded_skip"));
      if (got == expected) continue;
      equal = false;
      if (verdict.differences.size() < kShown) {
        verdict.differences.push_back(
            {.index = i, .text = text, .field = field, .expected = expected, .got = std::move(got)});
      }
    }
    // encode() and encode_full() must agree.
    const std::vector<int32_t> full = tokenizer.encode_full(text, {.add_specials = false}).ids;
    if (full != ids) {
      equal = false;
      if (verdict.differences.size() < kShown) {
        verdict.differences.push_back(
            {.index = i, .text = text, .field = "ids with offsets", .expected = ids, .got = full});
      }
    }
    ++verdict.cases;
    verdict.equal += equal ? 1 : 0;
  });
  return verdict;
}

}  // namespace qkv
