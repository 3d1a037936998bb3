#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

constexpr const char* kStrict = "JSON has no comments, no trailing commas, no NaN and nothing after its one value";
constexpr const char* kCutOff = "the text is cut off: was it written completely?";
constexpr const char* kBinary = "this is a binary file or UTF-16 text; save it as UTF-8";
constexpr const char* kNotUtf8 = "save the text as UTF-8";

// ASCII characters that stand for themselves in a string.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

unsigned char byte_at(const char* at) {
  return static_cast<unsigned char>(*at);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace

JsonReader::JsonReader(JsonText text, std::string_view what, JsonLimits limits)
    : text_(text),
      what_(what),
      deepest_(limits.depth),
      at_(text.text().data()),
      end_(text.text().data() + text.text().size()) {
  QKV_CHECK(text.text().size() <= limits.bytes, what_, ": the JSON text has ", text.text().size(),
            " bytes but the limit is ", limits.bytes, Hint("this is probably not the file you meant"));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const bool is_whole = text.text().data() == text.document().data();
  if (is_whole && text.text().starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
}

// --- errors ----------------------------------------------------------------------------------------------------------

// Line and column (in characters) for people, the byte for programs.
std::string JsonReader::place(const char* at) const {
  const std::string_view document = text_.document();
  const auto offset = static_cast<size_t>(at - document.data());
  const std::string_view before = document.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  const auto columns = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                     [](char c) { return !continues_character(c); });
  return fmt::format("line {}, column {} (byte {})", lines + 1, columns + 1, offset);
}

void JsonReader::fail(const char* at, const std::string& reason, const char* hint) const {
  if (at < end_ && *at == '\0') {
    QKV_FAIL(what_, ": not valid JSON, ", place(at), ": a zero byte", Hint(kBinary));
  }
  if (at == end_) hint = kCutOff;
  QKV_FAIL(what_, ": not valid JSON, ", place(at), ": ", at == end_ ? "unexpected end of input, " : "", reason,
           Hint(hint != nullptr ? hint : kStrict));
}

void JsonReader::fail_expected(const char* wanted) {
  peek();
  std::string reason = std::string("expected ") + wanted;
  if (at_ < end_) reason += " but found " + printable({at_, 1});
  fail(at_, reason, at_ < end_ && byte_at(at_) >= 0x80 ? kNotUtf8 : nullptr);
}

void JsonReader::fail_twice(std::string_view key) const {
  QKV_FAIL(what_, ": the key ", printable(key), " appears twice in one object, ", place(key_end_ - 1),
           Hint("keep one of the two"));
}

void JsonReader::fail_memory(size_t limit) const {
  QKV_FAIL(what_, ": the values of this JSON text take more than ", limit, " bytes of memory, ", place(at_ - 1),
           Hint("no file of this kind holds so many: it is damaged or made to do harm"));
}

// --- values ----------------------------------------------------------------------------------------------------------

char JsonReader::peek() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  return at_ < end_ ? *at_ : '\0';
}

void JsonReader::expect(char wanted, const char* after) {
  if (peek() != wanted || at_ == end_) fail_expected(after);
  ++at_;
}

JsonReader::Kind JsonReader::kind() {
  switch (peek()) {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      if (at_ == end_ || (*at_ != '-' && !is_digit(*at_))) fail_expected("a value");
      return Kind::number;
  }
}

void JsonReader::open() {
  QKV_CHECK(depth_ < deepest_, what_, ": nested more than ", deepest_, " levels deep, ", place(at_ - 1),
            Hint("no real file nests so deep: it is damaged or made to do harm"));
  ++depth_;
}

void JsonReader::members(Member member) {
  expect('{', "'{'");
  open();
  if (peek() == '}') {
    ++at_;
    --depth_;
    return;
  }
  std::string spare;
  while (true) {
    if (peek() != '"') fail_expected("a key in double quotes");
    key_begin_ = at_;
    const std::string_view key = string(spare);
    key_end_ = at_;
    expect(':', "':'");
    member(key);
    if (peek() == '}') break;
    expect(',', "',' or '}'");
  }
  ++at_;
  --depth_;
}

void JsonReader::elements(FunctionRef<void()> element) {
  expect('[', "'['");
  open();
  if (peek() == ']') {
    ++at_;
    --depth_;
    return;
  }
  while (true) {
    element();
    if (peek() == ']') break;
    expect(',', "',' or ']'");
  }
  ++at_;
  --depth_;
}

JsonNumber JsonReader::number() {
  if (kind() != Kind::number) fail_expected("a number");
  const char* const start = at_;
  const auto digits = [&] {
    if (at_ == end_ || !is_digit(*at_)) fail(at_, "expected a digit of a number");
    while (at_ < end_ && is_digit(*at_)) ++at_;
  };
  if (*at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0') {
    ++at_;
  } else {
    digits();
  }
  const char* const whole = at_;
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    digits();
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    digits();
  }
  JsonNumber out;
  if (at_ == whole) {
    if (std::from_chars(start, at_, out.integer).ec == std::errc()) {
      out.real = static_cast<double>(out.integer);
      return out;
    }
    if (*start != '-' && std::from_chars(start, at_, out.large).ec == std::errc()) {
      out.kind = JsonNumber::Kind::large;
      out.real = static_cast<double>(out.large);
      return out;
    }
  }
  out.kind = JsonNumber::Kind::real;
  if (std::from_chars(start, at_, out.real).ec != std::errc()) {  // too large or too small
    out.real = std::strtod(std::string(start, at_).c_str(), nullptr);
    if (!std::isfinite(out.real)) {
      at_ = start;
      fail(start, "number overflow", "numbers must fit in a double, up to about 1.8e308");
    }
  }
  return out;
}

void JsonReader::take_word(std::string_view word) {
  for (const char c : word) {
    if (at_ == end_ || *at_ != c) fail(at_, "expected '" + std::string(word) + "'");
    ++at_;
  }
}

bool JsonReader::boolean() {
  if (kind() != Kind::boolean) fail_expected("true or false");
  const bool value = *at_ == 't';
  take_word(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  if (kind() != Kind::null) fail_expected("null");
  take_word("null");
}

// --- strings ---------------------------------------------------------------------------------------------------------

const char* JsonReader::utf8_character(const char* from) const {
  const unsigned char lead = byte_at(from);
  const int more = lead >= 0xF0 && lead <= 0xF4 ? 3 : lead >= 0xE0 && lead < 0xF0 ? 2 : lead >= 0xC2 && lead < 0xE0;
  const auto wrong = [&](const char* at) { fail(at, "the bytes of a string are not UTF-8", kNotUtf8); };
  if (more == 0) wrong(from);
  // The second byte decides about overlong forms, surrogates and codes above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i <= more; ++i) {
    const char* const at = from + i;
    if (at == end_) fail(at, "inside a UTF-8 character");
    if (byte_at(at) < (i == 1 ? low : 0x80) || byte_at(at) > (i == 1 ? high : 0xBF)) wrong(at);
  }
  return from + 1 + more;
}

const char* JsonReader::plain_characters(const char* from) const {
  while (true) {
    while (from < end_ && kPlain[byte_at(from)]) ++from;
    if (from == end_) fail(from, "inside a string");
    if (*from == '"' || *from == '\\') return from;
    if (byte_at(from) < 0x20) fail(from, "a control character in a string must be escaped");
    from = utf8_character(from);
  }
}

uint32_t JsonReader::take_hex() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_) fail(at_, "inside a string");
    const char c = *at_;
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail(at_, "'\\u' must be followed by 4 hexadecimal digits");
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  return code;
}

void JsonReader::append_escape(std::string& out) {
  if (++at_ == end_) fail(at_, "inside a string");
  constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  if (*at_ != 'u') {
    const size_t which = kEscapes.find(*at_);
    if (which == kEscapes.npos || *at_ == '\0') fail(at_, "a backslash must be followed by one of \"\\/bfnrtu");
    out += kMeant[which];
    ++at_;
    return;
  }
  const char* const start = at_++;
  uint32_t code = take_hex();
  const auto lone = [&] { fail(start, "half of a surrogate pair", "write the character itself, in UTF-8"); };
  if (code >= 0xDC00 && code < 0xE000) lone();
  if (code >= 0xD800 && code < 0xDC00) {
    if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') lone();
    at_ += 2;
    const uint32_t second = take_hex();
    if (second < 0xDC00 || second >= 0xE000) lone();
    code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
  }
  append_utf8(out, code);
}

std::string_view JsonReader::string(std::string& spare) {
  if (peek() != '"') fail_expected("a string");
  const char* const start = ++at_;
  at_ = plain_characters(at_);
  if (*at_ == '"') return {start, static_cast<size_t>(at_++ - start)};
  spare.assign(start, at_);
  while (*at_ != '"') {
    append_escape(spare);
    const char* const run = std::exchange(at_, plain_characters(at_));
    spare.append(run, at_);
  }
  ++at_;
  return spare;
}

void JsonReader::skip_string() {
  std::string escaped;
  at_ = plain_characters(at_ + 1);
  while (*at_ != '"') {
    escaped.clear();
    append_escape(escaped);
    at_ = plain_characters(at_);
  }
  ++at_;
}

JsonText JsonReader::skip() {
  const Kind what = kind();
  const char* const start = at_;
  size_t items = 0;
  switch (what) {
    case Kind::object:
      members([&](std::string_view) {
        skip();
        ++items;
      });
      break;
    case Kind::array:
      elements([&] {
        skip();
        ++items;
      });
      break;
    case Kind::string:
      skip_string();
      break;
    case Kind::number:
      number();
      break;
    case Kind::boolean:
      boolean();
      break;
    case Kind::null:
      null();
      break;
  }
  return {{start, static_cast<size_t>(at_ - start)}, text_.document(), items};
}

void JsonReader::end() {
  peek();
  if (at_ != end_) fail(at_, "something follows the value");
}

}  // namespace qkv
