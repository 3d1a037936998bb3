#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/pcre2_split.h"

#include <pcre2.h>

#include <functional>
#include <map>
#include <memory>

#include "base/error.h"

namespace qkv::test {

namespace {

using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;

const pcre2_code* compiled(std::string_view regex) {
  static std::map<std::string, Code, std::less<>> codes;
  if (const auto known = codes.find(regex); known != codes.end()) return known->second.get();
  int error = 0;
  PCRE2_SIZE where = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(), PCRE2_UTF | PCRE2_UCP, &error,
                          &where, nullptr),
            pcre2_code_free);
  QKV_ASSERT(code, "the regular expression fails at ", where, " with error ", error);
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return codes.emplace(regex, std::move(code)).first->second.get();
}

}  // namespace

Pieces pcre2_split(std::string_view regex, std::string_view text) {
  const pcre2_code* const code = compiled(regex);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);

  Pieces pieces;
  size_t done = 0, at = 0;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const uint32_t checked = PCRE2_NO_UTF_CHECK;
  uint32_t options = 0;
  while (at < text.size()) {
    const int matched = pcre2_match(code, subject, text.size(), at, options, match.get(), nullptr);
    if (matched == PCRE2_ERROR_NOMATCH) break;
    QKV_ASSERT(matched > 0, "pcre2_match returns ", matched, " at byte ", at);
    options = checked;
    const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(match.get());
    if (span[0] != done) pieces.emplace_back(text.substr(done, span[0] - done));
    pieces.emplace_back(text.substr(span[0], span[1] - span[0]));
    done = at = span[1];
  }
  if (done != text.size()) pieces.emplace_back(text.substr(done));
  return pieces;
}

}  // namespace qkv::test
