#include "text/tokenizer/pipeline/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKiB = 64 * 1024;
constexpr size_t kLongestExpression = 1 << 16;

std::string message_of(int code) {
  PCRE2_UCHAR8 text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Compiled {
  std::string shown, what;
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;

  Compiled(std::string_view expression, std::string_view where) : shown(printable(expression)), what(where) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

std::string to_pcre2(std::string_view from) {
  constexpr std::string_view kSpaces = "\\x{09}-\\x{0d}\\x{85}\\p{Z}", kWord = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";
  std::string to;
  std::vector<size_t> groups;  // starts of the open groups
  size_t atom = 0;             // start of the atom a quantifier applies to
  int classes = 0;             // depth of open [
  for (size_t i = 0; i < from.size(); ++i) {
    const char c = from[i];
    if (c == '\\' && i + 1 < from.size()) {
      const char next = from[++i];
      if (classes == 0) atom = to.size();
      const bool spaces = next == 's' || next == 'S', word = next == 'w' || next == 'W';
      const bool negated = next == 'S' || next == 'W';
      if ((spaces || word) && !(negated && classes > 0)) {
        const std::string_view set = spaces ? kSpaces : kWord;
        if (classes == 0) to += negated ? "[^" : "[";
        to += set;
        if (classes == 0) to += ']';
      } else if (next == 'h') {  // a hexadecimal digit in Oniguruma, a space in PCRE2
        to += classes > 0 ? "0-9a-fA-F" : "[0-9a-fA-F]";
      } else {
        to += c;
        to += next;
      }
      continue;
    }
    if (classes > 0) {
      if (c == ']') --classes;
      to += c;
      continue;
    }
    switch (c) {
      case '[':
        atom = to.size();
        ++classes;
        to += c;
        // ] directly after [ or [^ is a literal.
        if (i + 1 < from.size() && from[i + 1] == '^') to += from[++i];
        if (i + 1 < from.size() && from[i + 1] == ']') {
          to += "\\]";
          ++i;
        }
        break;
      case '(':
        groups.push_back(to.size());
        to += c;
        break;
      case ')':
        if (!groups.empty()) {
          atom = groups.back();
          groups.pop_back();
        }
        to += c;
        break;
      case '}':
        to += c;
        // {1,3}+ repeats the repetition in Oniguruma and is possessive in PCRE2.
        if (i + 1 < from.size() && from[i + 1] == '+') {
          to.insert(atom, "(?:");
          to += ')';
        }
        break;
      case '*':
      case '+':
      case '?':
      case '{':
        to += c;
        break;
      case ',':
      default:
        // Inside {1,3} the atom is still the one before it.
        if (const size_t open = to.rfind('{'); open == to.npos || to.find('}', open) != to.npos) atom = to.size();
        to += c;
        break;
    }
  }
  return to;
}

Regex::Regex(std::string_view expression, std::string_view what) {
  QKV_CHECK(expression.size() <= kLongestExpression, what, ": the regular expression has ", expression.size(),
            " bytes but the limit is ", kLongestExpression, Hint("no real tokenizer has such a pattern"));
  auto compiled = std::make_shared<Compiled>(expression, what);
  const std::string translated = to_pcre2(expression);
  int code = 0;
  size_t at = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  QKV_CHECK(compiled->code, what, ": bad regular expression ", compiled->shown, " near byte ", at, ": ",
            message_of(code), Hint("patterns follow Oniguruma's syntax, as Hugging Face tokenizers do"));
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // falls back to the interpreter without JIT
  compiled->context = pcre2_match_context_create(nullptr);
  QKV_ASSERT(compiled->context, "no memory for a regular expression");
  pcre2_set_match_limit(compiled->context, kMatchLimit);
  pcre2_set_heap_limit(compiled->context, kHeapLimitKiB);
  compiled_ = std::move(compiled);
}

void Regex::find_all(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const {
  // Checked once here: PCRE2 would check all the remaining text before each match.
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = begin;
    while (end < text.size() && utf8_length(text.substr(end)) > 0) end += utf8_length(text.substr(end));
    if (begin < end || text.empty()) {
      find_in_utf8(text.substr(begin, end - begin), [&](size_t from, size_t to) { match(begin + from, begin + to); });
    }
    begin = end + 1;
  }
}

void Regex::find_in_utf8(std::string_view text, FunctionRef<void(size_t begin, size_t end)> match) const {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr), pcre2_match_data_free);
  QKV_ASSERT(data, "no memory for a regular expression");
  size_t from = 0, last_end = SIZE_MAX;
  while (from <= text.size()) {
    const auto search = [&](uint32_t options) {
      return pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(), from,
                         options | PCRE2_NO_UTF_CHECK, data.get(), compiled_->context);
    };
    int found = search(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return;
    QKV_CHECK(found >= 0, compiled_->what, ": the regular expression ", compiled_->shown, " gave up after byte ", from,
              " of a text of ", text.size(), " bytes: ", message_of(found),
              Hint("the pattern backtracks too much on this text"));
    const size_t* bounds = pcre2_get_ovector_pointer(data.get());
    const size_t begin = bounds[0], end = bounds[1];
    const bool empty = begin == end;
    if (!empty || end != last_end) match(begin, end), last_end = end;
    from = end;
    if (empty) {
      if (from == text.size()) return;
      from += first_character(text.substr(from)).size();
    }
  }
}

}  // namespace qkv
