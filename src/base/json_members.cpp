#include "base/json_members.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

constexpr const char* kNotJson = "the text is damaged or cut off: was it written completely?";

// Finds where keys and values begin and end; parse_json validates them.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  // The next character after white space, which must be one of `wanted`.
  char expect(std::string_view wanted) {
    skip_space();
    const std::string found = at_ < text_.size() ? printable(text_.substr(at_, 1)) : "the end";
    QKV_CHECK(at_ < text_.size() && wanted.find(text_[at_]) != wanted.npos, what_, ": not valid JSON, byte ", at_,
              ": expected one of ", printable(wanted), " but found ", found, Hint(kNotJson));
    return text_[at_++];
  }

  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  size_t at() const { return at_; }

  std::string_view take_string() {
    const size_t start = at_;
    expect("\"");
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2U : 1U;
    QKV_CHECK(at_ < text_.size(), what_, ": not valid JSON, byte ", start, ": a string without its end",
              Hint(kNotJson));
    return text_.substr(start, ++at_ - start);
  }

  // Up to the comma or bracket that ends it.
  std::string_view take_value() {
    expect("{[\"-0123456789tfn");  // parse_json alone would let a byte order mark pass
    const size_t start = --at_;
    size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        take_string();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

 private:
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string_view text_, what_;
  size_t at_ = 0;
};

}  // namespace

void scan_json_members(std::string_view text, std::string_view what, JsonTextMember member, JsonMemberLimits limits) {
  const std::string where(what);
  std::set<std::string> keys;
  Scanner in(text, what);
  in.expect("{");
  char last = in.next_is('}') ? in.expect("}") : ',';
  while (last == ',') {
    const Json name = parse_json(in.take_string(), where + ": the key before byte " + std::to_string(in.at()));
    const auto [key, is_new] = keys.insert(name.get<std::string>());
    QKV_CHECK(is_new, what, ": the key ", printable(*key), " appears twice in one object, byte ", in.at(),
              Hint("keep one of the two"));
    QKV_CHECK(keys.size() <= limits.members, what, ": holds more than ", limits.members, " members, byte ", in.at(),
              Hint("no real file has so many: it is damaged or made to do harm"));
    in.expect(":");
    member(*key, in.take_value());
    last = in.expect(",}");
  }
  QKV_CHECK(in.at_end(), what, ": not valid JSON, byte ", in.at(), ": something follows the object", Hint(kNotJson));
}

void parse_json_members(std::string_view text, std::string_view what, JsonMember member, JsonMemberLimits limits) {
  const std::string where = std::string(what) + ": ";
  const auto parsed = [&](const std::string& key, std::string_view value) {
    member(key, parse_json(value, where + printable(key), {.depth = limits.depth, .bytes = limits.bytes}));
  };
  scan_json_members(text, what, parsed, limits);
}

}  // namespace qkv
