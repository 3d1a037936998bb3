#include "infer/grammar/pattern_tree.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv::grammar {
namespace {

using Kind = PatternNode::Kind;

class PatternParser {
 public:
  PatternParser(std::string_view pattern, std::string_view at, Budget& budget)
      : pattern_(pattern), at_(at), budget_(budget) {}

  PatternNode whole() {
    PatternNode node = either(0);
    if (next_ < pattern_.size()) fail("has a ) without its (");
    return node;
  }

 private:
  static constexpr int kDeepest = 50;

  [[noreturn]] void fail(std::string_view what) const {
    QKV_FAIL(at_, ": the pattern ", pattern_, " ", what, ", at byte ", next_,
             Hint("supported are literals, classes, groups, |, counted repeats, ^ and $"));
  }
  bool more() const { return next_ < pattern_.size(); }
  bool take(char c) {
    if (!more() || pattern_[next_] != c) return false;
    ++next_;
    return true;
  }
  uint32_t code() {
    const Char c = char_at(pattern_, next_);
    if (is_stray_byte(c)) fail("is not UTF-8");
    next_ += c.bytes;
    return c.code;
  }

  PatternNode either(int depth) {
    if (depth > kDeepest) fail("is nested too deep");
    PatternNode all{.kind = Kind::either};
    do all.parts.push_back(sequence(depth));
    while (take('|'));
    if (std::all_of(all.parts.begin(), all.parts.end(), is_empty_text)) return {};
    return all.parts.size() == 1 ? std::move(all.parts[0]) : all;
  }

  // Whether it matches the empty text alone, wherever it stands. Its parts are simplified already.
  static bool is_empty_text(const PatternNode& node) {
    if (node.kind == Kind::repeat) return node.most == 0 || is_empty_text(node.parts[0]);
    return node.kind == Kind::sequence && node.parts.empty();
  }

  PatternNode sequence(int depth) {
    PatternNode all;
    while (more() && pattern_[next_] != '|' && pattern_[next_] != ')') {
      PatternNode part = atom(depth);
      const bool assertion = part.kind == Kind::start || part.kind == Kind::end;
      std::optional<PatternNode> repeat = quantifier();
      if (repeat && assertion) fail("repeats ^ or $");
      if (repeat) {
        repeat->parts.push_back(std::move(part));
        part = std::move(*repeat);
      }
      if (!is_empty_text(part)) all.parts.push_back(std::move(part));
    }
    return all;
  }

  std::optional<PatternNode> quantifier() {
    PatternNode repeat{.kind = Kind::repeat};
    if (take('*')) {
    } else if (take('+')) {
      repeat.least = 1;
    } else if (take('?')) {
      repeat.most = 1;
    } else if (more() && pattern_[next_] == '{') {
      ++next_;
      repeat.least = count();
      if (!take(',')) {
        repeat.most = repeat.least;
      } else if (more() && pattern_[next_] != '}') {
        repeat.most = count();
        if (*repeat.most < repeat.least) fail("has a repeat with its most below its least");
      }
      if (!take('}')) fail("has { without its }; write \\{ for the character");
    } else {
      return std::nullopt;
    }
    take('?');  // lazy: the same texts
    if (more() &&
        (pattern_[next_] == '*' || pattern_[next_] == '+' || pattern_[next_] == '?' || pattern_[next_] == '{'))
      fail("repeats a repeat");
    return repeat;
  }

  size_t count() {
    if (!more() || pattern_[next_] < '0' || pattern_[next_] > '9') fail("has a repeat without its number");
    size_t n = 0;
    while (more() && pattern_[next_] >= '0' && pattern_[next_] <= '9') {
      n = n * 10 + static_cast<size_t>(pattern_[next_++] - '0');
      if (n > kMostRepeats) fail("repeats more than 1000 times");
    }
    return n;
  }

  PatternNode atom(int depth) {
    if (take('(')) {
      if (take('?') && !take(':')) {
        const bool named = take('<') && more() && pattern_[next_] != '=' && pattern_[next_] != '!';
        if (!named) fail("looks ahead or behind, which is not supported");
        const size_t end = pattern_.find('>', next_);
        if (end == pattern_.npos) fail("has a group name without its >");
        next_ = end + 1;
      }
      PatternNode inside = either(depth + 1);
      if (!take(')')) fail("has a ( without its )");
      return inside;
    }
    if (take('^')) return {.kind = Kind::start};
    if (take('$')) return {.kind = Kind::end};
    if (take('[')) return {.kind = Kind::one_of, .set = bracket()};
    if (take('.')) {
      return {.kind = Kind::one_of, .set = CodeSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement()};
    }
    if (take('\\')) {
      if (const std::optional<CodeSet> set = class_escape(false)) return {.kind = Kind::one_of, .set = *set};
      const uint32_t c = escaped();
      return {.kind = Kind::one_of, .set = {{c, c}}};
    }
    for (const char c : {'*', '+', '?', '{', '}', ']'}) {
      if (pattern_[next_] == c) fail("has a special character where nothing is to repeat or close");
    }
    const uint32_t c = code();
    return {.kind = Kind::one_of, .set = {{c, c}}};
  }

  // After [. The set of a negated class is taken from the widest reading of what it names.
  CodeSet bracket() {
    const bool negated = take('^');
    CodeSet set;
    while (!take(']')) {
      if (!more()) fail("has [ without its ]");
      budget_.spend(1 + set.ranges().size());
      const std::optional<uint32_t> low = class_member(negated, set);
      const bool range = low && next_ + 1 < pattern_.size() && pattern_[next_] == '-' && pattern_[next_ + 1] != ']';
      if (!range) {
        if (low) set.add({*low, *low});
        continue;
      }
      ++next_;
      CodeSet none;
      const std::optional<uint32_t> high = class_member(negated, none);
      if (!high || *high < *low) fail("has a class with a range that is none");
      set.add({*low, *high});
    }
    return negated ? set.complement() : set;
  }

  std::optional<uint32_t> class_member(bool negated, CodeSet& set) {
    if (!take('\\')) return code();
    if (take('b')) return '\b';
    if (const std::optional<CodeSet> named = class_escape(negated)) {
      budget_.spend(named->ranges().size() * (1 + set.ranges().size()));
      set.add(*named);
      return std::nullopt;
    }
    if (take('-')) return '-';
    return escaped();
  }

  std::optional<CodeSet> class_escape(bool negated) {
    if (!more()) fail("ends with a backslash");
    const auto either_way = [&](const ClassSets& sets, bool complement) {
      ++next_;
      const bool wide = negated != complement;
      const CodeSet& set = wide ? sets.wide : sets.narrow;
      return complement ? set.complement() : set;
    };
    switch (pattern_[next_]) {
      case 'd':
        return either_way(digit_class(), false);
      case 'D':
        return either_way(digit_class(), true);
      case 'w':
        return either_way(word_class(), false);
      case 'W':
        return either_way(word_class(), true);
      case 's':
        return either_way(space_class(), false);
      case 'S':
        return either_way(space_class(), true);
      default:
        return std::nullopt;
    }
  }

  uint32_t escaped() {
    if (!more()) fail("ends with a backslash");
    const char c = pattern_[next_];
    constexpr std::string_view kPunctuation = R"(^$\.*+?()[]{}|/-"'#@!%&=:;,<>~`_ )";
    constexpr std::string_view kLetters = "tnvfr", kCodes = "\t\n\v\f\r";
    if (kPunctuation.find(c) != kPunctuation.npos) return ++next_, static_cast<uint32_t>(c);
    if (const size_t i = kLetters.find(c); i != kLetters.npos) return ++next_, static_cast<uint32_t>(kCodes[i]);
    if (c == '0' && !(next_ + 1 < pattern_.size() && pattern_[next_ + 1] >= '0' && pattern_[next_ + 1] <= '9')) {
      return ++next_, 0;
    }
    if (c == 'x') return ++next_, hex(2);
    if (c == 'u') {
      ++next_;
      const uint32_t high = hex(4);
      if (high < 0xd800 || high > 0xdfff) return high;
      if (high < 0xdc00 && pattern_.substr(next_, 2) == "\\u") {
        next_ += 2;
        const uint32_t low = hex(4);
        if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
      }
      fail("has half of a surrogate pair");
    }
    if (c >= '1' && c <= '9') fail("refers back to a group, which is not supported");
    fail("has an escape that is not supported");
  }

  uint32_t hex(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = more() ? pattern_[next_++] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("has an escape without its hexadecimal digits");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return value;
  }

  std::string_view pattern_, at_;
  Budget& budget_;
  size_t next_ = 0;
};

}  // namespace

PatternNode parse_pattern(std::string_view pattern, std::string_view at, Budget& budget) {
  constexpr size_t kLongest = 4096;
  QKV_CHECK(pattern.size() <= kLongest, at, ": the pattern has ", pattern.size(), " bytes but at most ", kLongest,
            " are read", Hint("shorten it"));
  return PatternParser(pattern, at, budget).whole();
}

}  // namespace qkv::grammar
