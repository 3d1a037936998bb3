#include "text/unicode/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && is_utf8_continuation(text[begin])) --begin;
  return text.substr(begin);
}

std::string_view next_character(std::string_view text) {
  return text.substr(0, utf8_length_from_lead(text[0]));
}

bool is_space(std::string_view character) {
  return is_python_space(code_point(character));
}

enum class Case { lower, upper, title };

// One character may become several. utf8proc's case mapping is one to one, so the long forms come from case folding.
void append_mapped(std::string& out, int32_t code, Case to) {
  if (code < 0x80) {
    const bool lower = code >= 'a' && code <= 'z', upper = code >= 'A' && code <= 'Z';
    if (to == Case::lower && upper) code += 32;
    if (to != Case::lower && lower) code -= 32;
    out += static_cast<char>(code);
    return;
  }
  if (to == Case::lower) {
    if (code == 0x130) out += "i\xcc\x87";
    if (code != 0x130) out += utf8_of(static_cast<uint32_t>(utf8proc_tolower(code)));
    return;
  }
  if (to == Case::title && (code == 0xDF || code == 0x149)) {
    out += code == 0xDF ? "Ss" : "\xca\xbcN";
    return;
  }
  const utf8proc_category_t category = utf8proc_category(code);
  if (category != UTF8PROC_CATEGORY_LU) {
    std::array<utf8proc_int32_t, 8> folded{};
    int last_class = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(code, folded.data(), 8, UTF8PROC_CASEFOLD, &last_class);
    const int32_t title = utf8proc_totitle(code);
    if (count > 1 && count <= 8 && (to == Case::upper || title == code) &&
        (to == Case::upper || category != UTF8PROC_CATEGORY_LT)) {
      for (utf8proc_ssize_t i = 0; i < count; ++i) {
        append_mapped(out, folded[static_cast<size_t>(i)], i > 0 && to == Case::title ? Case::lower : to);
      }
      return;
    }
  }
  const int32_t mapped = to == Case::upper ? utf8proc_toupper(code) : utf8proc_totitle(code);
  out += utf8_of(static_cast<uint32_t>(mapped));
}

bool is_cased(int32_t code) {
  if (code < 0x80) return (code | 32) >= 'a' && (code | 32) <= 'z';
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

// Case_Ignorable: marks and the like between letters do not end a word.
bool is_case_ignorable(int32_t code) {
  if (code < 0x80) return std::string_view("'.:^`").find(static_cast<char>(code)) != std::string_view::npos;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == 0xB7 || code == 0x2018 || code == 0x2019;
  }
}

// A capital sigma at the end of a word has its own lower-case form.
bool ends_word(std::string_view before, std::string_view after) {
  while (!before.empty() && is_case_ignorable(code_point(last_character(before)))) {
    before.remove_suffix(last_character(before).size());
  }
  while (!after.empty() && is_case_ignorable(code_point(next_character(after)))) {
    after.remove_prefix(next_character(after).size());
  }
  return !before.empty() && is_cased(code_point(last_character(before))) &&
         (after.empty() || !is_cased(code_point(next_character(after))));
}

void append_lower(std::string& out, std::string_view text, size_t at, int32_t code) {
  constexpr int32_t kCapitalSigma = 0x3A3;
  if (code == kCapitalSigma && ends_word(text.substr(0, at), text.substr(at + 2))) {
    out += "\xcf\x82";
  } else {
    append_mapped(out, code, Case::lower);
  }
}

// Calls visit(byte offset, code point) for every character.
template <class Visit>
void each_character(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::string_view character = next_character(text.substr(at));
    visit(at, lead < 0x80 ? lead : code_point(character));
    at += character.size();
  }
}

std::vector<std::string_view> split_at_spaces(std::string_view text, const PythonSplit& options) {
  std::vector<std::string_view> words;
  const bool from_left = options.from == Ends::left;
  text = python_strip(text, {}, options.from);
  while (!text.empty()) {
    if (words.size() == options.max_splits) {
      words.push_back(text);  // the unsplit rest keeps its trailing spaces
      break;
    }
    size_t size = 0;
    while (size < text.size()) {
      const std::string_view c =
          from_left ? next_character(text.substr(size)) : last_character(text.substr(0, text.size() - size));
      if (is_space(c)) break;
      size += c.size();
    }
    words.push_back(from_left ? text.substr(0, size) : text.substr(text.size() - size));
    from_left ? text.remove_prefix(size) : text.remove_suffix(size);
    text = python_strip(text, {}, options.from);
  }
  if (!from_left) std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

bool is_python_space(int32_t code) {
  return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

size_t python_length(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

std::vector<std::string_view> python_characters(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(python_length(text));
  for (; !text.empty(); text.remove_prefix(out.back().size())) out.push_back(next_character(text));
  return out;
}

size_t bytes_of_characters(std::string_view text, size_t characters) {
  size_t bytes = 0;
  for (; characters > 0 && bytes < text.size(); --characters) bytes += utf8_length_from_lead(text[bytes]);
  return std::min(bytes, text.size());
}

std::string_view python_strip(std::string_view text, std::optional<std::string_view> characters, Ends ends) {
  const auto goes = [&](std::string_view c) {
    return characters ? characters->find(c) != characters->npos : is_space(c);
  };
  if (ends != Ends::right) {
    while (!text.empty() && goes(next_character(text))) text.remove_prefix(next_character(text).size());
  }
  if (ends != Ends::left) {
    while (!text.empty() && goes(last_character(text))) text.remove_suffix(last_character(text).size());
  }
  return text;
}

std::vector<std::string_view> python_split(std::string_view text, const PythonSplit& options) {
  if (!options.separator) return split_at_spaces(text, options);
  const std::string_view separator = *options.separator;
  std::vector<std::string_view> parts;
  const bool from_left = options.from == Ends::left;
  while (parts.size() < options.max_splits) {
    const size_t at = from_left ? text.find(separator) : text.rfind(separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_left ? before : after);
    text = from_left ? after : before;
  }
  parts.push_back(text);
  if (!from_left) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> python_lines(std::string_view text, LineEnds ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view c = next_character(text.substr(at));
    const int32_t code = code_point(c);
    const bool ends_line = (code >= 10 && code <= 13) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                           code == 0x2028 || code == 0x2029;
    size_t size = c.size();
    if (code == '\r' && text.substr(at + 1).starts_with('\n')) ++size;
    if (ends_line) {
      lines.push_back(text.substr(begin, at - begin + (ends == LineEnds::keep ? size : 0)));
      begin = at + size;
    }
    at += size;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string python_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](size_t at, int32_t code) { append_lower(out, text, at, code); });
  return out;
}

std::string python_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](size_t, int32_t code) { append_mapped(out, code, Case::upper); });
  return out;
}

std::string python_capitalize(std::string_view text) {
  std::string out;
  each_character(text, [&](size_t at, int32_t code) {
    at == 0 ? append_mapped(out, code, Case::title) : append_lower(out, text, at, code);
  });
  return out;
}

std::string python_title(std::string_view text) {
  std::string out;
  bool in_word = false;
  each_character(text, [&](size_t at, int32_t code) {
    in_word ? append_lower(out, text, at, code) : append_mapped(out, code, Case::title);
    in_word = is_cased(code);
  });
  return out;
}

}  // namespace qkv
