#include "text/chat/jinja/lexer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/chat/jinja/strings.h"
#include "text/unicode/python_text.h"
#include "text/unicode/utf8.h"

namespace qkv::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) {
  return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

bool is_name_part(std::string_view character) {
  const char c = character[0];
  if (character.size() == 1) return is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');
  const utf8proc_category_t category = utf8proc_category(code_point(character));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_MC) || category == UTF8PROC_CATEGORY_ND;
}

class Lexer {
  using Kind = Token::Kind;

 public:
  Lexer(std::string_view source, std::string_view what) : source_(source), what_(what) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_data();
    tokens_.push_back({.kind = Kind::end, .line = line_});
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, and that tag.
  void read_data() {
    size_t tag = at_;
    while ((tag = source_.find('{', tag)) != source_.npos) {
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    if (tag == source_.npos) {
      add_data(source_.substr(at_));
      advance(source_.size());
      return;
    }
    const char type = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    const bool signed_tag = sign == '-' || sign == '+';
    add_data(before_tag(source_.substr(at_, tag - at_), type, signed_tag ? sign : ' '));
    const int tag_line = line_ + static_cast<int>(std::ranges::count(source_.substr(at_, tag - at_), '\n'));
    advance(tag + (signed_tag ? 3 : 2));
    if (type == '#') return skip_comment(tag_line);
    if (type == '%' && read_raw(tag_line)) return;
    tokens_.push_back({.kind = type == '{' ? Kind::print : Kind::block, .line = tag_line});
    while (!read_end_of_tag(type)) read_token(tag_line);
  }

  // Strips the text before a tag: '-' removes all trailing white space; a block or comment alone at the start of its
  // line removes the spaces before it.
  std::string_view before_tag(std::string_view text, char type, char sign) const {
    if (sign == '-') return python_strip(text, {}, Ends::right);
    if (sign == '+' || type == '{') return text;
    const size_t line_start = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line_start == 0 && !line_starts_) return text;
    const bool blank = python_strip(text.substr(line_start), {}, Ends::left).empty();
    return blank ? text.substr(0, line_start) : text;
  }

  void add_data(std::string_view text) {
    if (!text.empty()) tokens_.push_back({.kind = Kind::data, .line = line_, .text = std::string(text)});
  }

  // Continues after the end of a tag. `sign` is '-', '+' or ' '.
  void leave_tag(size_t end, char sign, bool trims) {
    size_t next = end;
    if (sign == '-') {
      next = source_.size() - python_strip(source_.substr(end), {}, Ends::left).size();
    } else if (trims && sign != '+' && source_.substr(end).starts_with('\n')) {
      ++next;
    }
    advance(next);
  }

  void advance(size_t to) {
    if (to > at_) line_starts_ = source_[to - 1] == '\n';
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, to - at_), '\n'));
    at_ = to;
  }

  void skip_comment(int tag_line) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail_at(what_, tag_line, "a comment {# is not closed", "close it with #}");
    leave_tag(end + 2, end > at_ ? source_[end - 1] : ' ', true);
  }

  size_t skip_spaces(size_t at) const {
    return source_.size() - python_strip(source_.substr(at), {}, Ends::left).size();
  }

  // {% raw %} ... {% endraw %}; false for any other tag.
  bool read_raw(int tag_line) {
    size_t at = skip_spaces(at_);
    if (!source_.substr(at).starts_with("raw")) return false;
    at = skip_spaces(at + 3);
    const bool strips = source_.substr(at).starts_with("-%}");
    if (!strips && !source_.substr(at).starts_with("%}")) return false;
    leave_tag(at + (strips ? 3 : 2), strips ? '-' : ' ', false);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != source_.npos; tag += 2) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      size_t end = skip_spaces(tag + (sign == '-' || sign == '+' ? 3 : 2));
      if (!source_.substr(end).starts_with("endraw")) continue;
      end = skip_spaces(end + 6);
      const char closing = end < source_.size() ? source_[end] : ' ';
      if (closing == '-' || closing == '+') ++end;
      if (!source_.substr(end).starts_with("%}")) continue;
      add_data(before_tag(source_.substr(at_, tag - at_), '%', sign));
      leave_tag(end + 2, closing, true);
      return true;
    }
    fail_at(what_, tag_line, "{% raw %} is not closed", "close it with {% endraw %}");
  }

  bool read_end_of_tag(char type) {
    advance(skip_spaces(at_));
    if (!open_.empty()) return false;
    const std::string_view left = source_.substr(at_);
    const std::string_view end = type == '{' ? "}}" : "%}";
    const bool sign = left.starts_with('-') || (type == '%' && left.starts_with('+'));
    if (!left.substr(sign ? 1 : 0).starts_with(end)) return false;
    tokens_.push_back({.kind = type == '{' ? Kind::end_print : Kind::end_block, .line = line_});
    leave_tag(at_ + (sign ? 3 : 2), sign ? left[0] : ' ', type == '%');
    return true;
  }

  void read_token(int tag_line) {
    if (at_ >= source_.size()) {
      fail_at(what_, tag_line, "a tag is not closed", "close {{ with }} and {% with %}, and every bracket inside");
    }
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    size_t end = at_;
    while (end < source_.size() && is_name_part(first_character(source_.substr(end)))) {
      end += first_character(source_.substr(end)).size();
    }
    if (end > at_) return add(Kind::name, end);
    read_symbol();
  }

  void add(Kind kind, size_t end) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::string(source_.substr(at_, end - at_))});
    advance(end);
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? size_t{2} : 1;
    if (end >= source_.size()) fail_at(what_, line_, "a string is not closed", "close it with the quote that opens it");
    std::string meant = unescape(source_.substr(at_ + 1, end - at_ - 1), [&](std::string_view problem) {
      fail_at(what_, line_, problem, "write the character itself, or \\uXXXX with four hexadecimal digits");
    });
    tokens_.push_back({.kind = Kind::text, .line = line_, .text = std::move(meant)});
    advance(end + 1);
  }

  // End of digits with single underscores between them.
  size_t digits(size_t at, bool (*is)(char)) const {
    const size_t begin = at;
    while (at < source_.size() &&
           (is(source_[at]) || (at > begin && source_[at] == '_' && at + 1 < source_.size() && is(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  // The base by prefix: 0x1F, 0o17, 0b101, else 10.
  int base() const {
    const char letter =
        at_ + 2 < source_.size() && source_[at_] == '0' ? static_cast<char>(source_[at_ + 1] | 32) : ' ';
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  }

  void read_number() {
    const int in_base = base();
    const size_t begin = in_base == 10 ? at_ : at_ + 2;
    size_t end = digits(begin, in_base == 16 ? is_hex_digit : is_digit);
    bool is_integer = true;
    const bool is_index = at_ > 0 && source_[at_ - 1] == '.';  // x.0.1 is x[0][1]
    if (in_base == 10 && !is_index && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      end = digits(end + 1, is_digit);
      is_integer = false;
    }
    if (in_base == 10 && end < source_.size() && (source_[end] | 32) == 'e') {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      const size_t after = digits(exponent, is_digit);
      if (after > exponent) {
        end = after;
        is_integer = false;
      }
    }
    std::string written(source_.substr(begin, end - begin));
    std::erase(written, '_');
    Token token{.kind = is_integer ? Kind::integer : Kind::number, .line = line_, .text = written};
    const char* last = written.data() + written.size();
    const auto result = is_integer ? std::from_chars(written.data(), last, token.integer, in_base)
                                   : std::from_chars(written.data(), last, token.number);
    const bool leading_zero = is_integer && in_base == 10 && written[0] == '0' && token.integer != 0;
    if (result.ec != std::errc() || result.ptr != last || leading_zero) {
      fail_at(what_, line_, "the number " + printable(source_.substr(at_, end - at_)) + " cannot be taken",
              "numbers have no leading zero and fit in 64 bits");
    }
    tokens_.push_back(std::move(token));
    advance(end);
  }

  void read_symbol() {
    static constexpr std::array<std::string_view, 25> kSymbols{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                               ">",  "<",  "=",  ".",  ":",  "|",  ","};
    const std::string_view left = source_.substr(at_);
    const auto symbol = std::ranges::find_if(kSymbols, [&](std::string_view s) { return left.starts_with(s); });
    if (symbol == kSymbols.end()) {
      fail_at(what_, line_, "unexpected character " + printable(first_character(left)), "Jinja has no such operator");
    }
    const char c = (*symbol)[0];
    if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_.empty() || open_.back() != c) {
        fail_at(what_, line_, "unexpected " + printable(*symbol), "close brackets in the order they were opened");
      }
      open_.pop_back();
    }
    add(Kind::symbol, at_ + symbol->size());
  }

  std::string_view source_, what_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // the last character read was a line end
  std::string open_;         // closing brackets still expected
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, std::string_view what) {
  return Lexer(source, what).run();
}

void fail_at(std::string_view what, int line, std::string_view problem, std::string_view hint) {
  QKV_FAIL(what, ": chat template line ", line, ": ", problem, Hint(hint));
}

}  // namespace qkv::jinja
