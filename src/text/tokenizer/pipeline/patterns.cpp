#include "text/tokenizer/pipeline/patterns.h"

#include <array>

#include "text/unicode/char_kind.h"

namespace qkv {
namespace {

using Byte = unsigned char;

// The text and the character runs that make up a pattern. Every function returns the end of its run.
class Scan {
 public:
  explicit Scan(std::string_view text) : begin(reinterpret_cast<const Byte*>(text.data())), end(begin + text.size()) {}

  Char at(const Byte* p) const { return kinds_.at(p, end); }

  template <uint8_t kKinds>
  const Byte* run_of(const Byte* p) const {
    while (p != end) {
      const Char c = at(p);
      if ((c.kind & kKinds) == 0) break;
      p += c.bytes;
    }
    return p;
  }

  template <uint8_t kKinds>
  const Byte* run_without(const Byte* p) const {
    while (p != end) {
      const Char c = at(p);
      if ((c.kind & kKinds) != 0) break;
      p += c.bytes;
    }
    return p;
  }

  // \p{N}{1,3} after the first number
  const Byte* up_to_two_numbers(const Byte* p) const {
    for (int i = 0; i < 2 && p != end; ++i) {
      const Char c = at(p);
      if ((c.kind & kNumber) == 0) break;
      p += c.bytes;
    }
    return p;
  }

  // \s+(?!\S)|\s+ at a space: a run before a word excludes its last space.
  const Byte* spaces(const Byte* p) const {
    const Byte* const start = p;
    const Byte* last = p;
    while (p != end) {
      const Char c = at(p);
      if ((c.kind & kSpace) == 0) break;
      last = p;
      p += c.bytes;
    }
    return p == end || last == start ? p : last;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ at a space: the last line end of the run ends the match.
  const Byte* spaces_or_lines(const Byte* p) const {
    const Byte* const start = p;
    const Byte* last = p;
    const Byte* line = nullptr;
    while (p != end) {
      const Char c = at(p);
      if ((c.kind & kSpace) == 0) break;
      last = p;
      p += c.bytes;
      if ((c.kind & kLineEnd) != 0) line = p;
    }
    if (line) return line;
    return p == end || last == start ? p : last;
  }

  // 's|'t|'re|'ve|'m|'ll|'d at p, which must be the apostrophe; returns p if there is no match.
  const Byte* contraction(const Byte* p) const {
    if (end - p < 2 || *p != '\'') return p;
    switch (p[1]) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return p + 2;
      case 'r':
      case 'v':
        return end - p >= 3 && p[2] == 'e' ? p + 3 : p;
      case 'l':
        return end - p >= 3 && p[2] == 'l' ? p + 3 : p;
      default:
        return p;
    }
  }

  // The same, case-insensitive; the long s folds to s.
  const Byte* any_case_contraction(const Byte* p) const {
    if (end - p < 2 || *p != '\'') return p;
    switch (p[1]) {
      case 's':
      case 'S':
      case 't':
      case 'T':
      case 'm':
      case 'M':
      case 'd':
      case 'D':
        return p + 2;
      case 'r':
      case 'R':
      case 'v':
      case 'V':
        return end - p >= 3 && (p[2] | 32) == 'e' ? p + 3 : p;
      case 'l':
      case 'L':
        return end - p >= 3 && (p[2] | 32) == 'l' ? p + 3 : p;
      case 0xC5:
        return end - p >= 3 && p[2] == 0xBF ? p + 3 : p;
      default:
        return p;
    }
  }

  const Byte* const begin;
  const Byte* const end;

 private:
  const CharKinds& kinds_ = CharKinds::table();
};

// One function per pattern: the end of the match that starts at p < end, or p if there is none.

const Byte* match_gpt2(const Scan& s, const Byte* p) {
  if (*p == '\'') {
    if (const Byte* q = s.contraction(p); q != p) return q;
  }
  const Byte* const word = *p == ' ' && s.end - p > 1 ? p + 1 : p;
  const Char c = s.at(word);
  if ((c.kind & kLetter) != 0) return s.run_of<kLetter>(word + c.bytes);
  if ((c.kind & kNumber) != 0) return s.run_of<kNumber>(word + c.bytes);
  if ((c.kind & kSpace) == 0) return s.run_without<kLetter | kNumber | kSpace>(word + c.bytes);
  return s.spaces(p);
}

//  ?[^\s\p{L}\p{N}]+[\r\n]* or spaces, at a p that starts neither a word nor a number. GPT-4o also allows slashes
// between the line ends.
template <bool kSlashes>
const Byte* match_symbols_or_spaces(const Scan& s, const Byte* p) {
  const Byte* const first = *p == ' ' && s.end - p > 1 ? p + 1 : p;
  const Char c = s.at(first);
  if ((c.kind & (kSpace | kLetter | kNumber)) != 0) return s.spaces_or_lines(p);
  const Byte* q = s.run_without<kSpace | kLetter | kNumber>(first + c.bytes);
  while (q != s.end && (*q == '\r' || *q == '\n' || (kSlashes && *q == '/'))) ++q;
  return q;
}

template <bool kThreeNumbers>
const Byte* match_llama3(const Scan& s, const Byte* p) {
  if (*p == '\'') {
    if (const Byte* q = s.any_case_contraction(p); q != p) return q;
  }
  const Char c = s.at(p);
  const Byte* const next = p + c.bytes;
  if ((c.kind & kLetter) != 0) return s.run_of<kLetter>(next);
  if ((c.kind & kNumber) != 0) return kThreeNumbers ? s.up_to_two_numbers(next) : next;
  if ((c.kind & kLineEnd) == 0 && next != s.end) {
    const Char d = s.at(next);
    if ((d.kind & kLetter) != 0) return s.run_of<kLetter>(next + d.bytes);
  }
  return match_symbols_or_spaces<false>(s, p);
}

constexpr uint8_t kHead = kUpper | kOtherLetter | kMark;  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
constexpr uint8_t kTail = kLower | kOtherLetter | kMark;  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

// kHead* kTail+ at p: the heads backtrack by as few characters as needed for one tail. Returns p if there is no tail.
const Byte* match_heads_tails(const Scan& s, const Byte* p) {
  const Byte* after_last_tail = p;
  while (p != s.end) {
    const Char c = s.at(p);
    if ((c.kind & kHead) == 0) break;
    p += c.bytes;
    if ((c.kind & kTail) != 0) after_last_tail = p;
  }
  const Byte* const tails = s.run_of<kTail>(p);
  return tails != p ? tails : after_last_tail;
}

const Byte* match_gpt4o(const Scan& s, const Byte* p) {
  const Char c = s.at(p);
  const bool may_lead = (c.kind & (kLineEnd | kLetter | kNumber)) == 0;  // [^\r\n\p{L}\p{N}]
  const Byte* const next = p + c.bytes;
  if (may_lead || (c.kind & kLetter) != 0) {
    if (may_lead) {
      if (const Byte* q = match_heads_tails(s, next); q != next) return s.any_case_contraction(q);
    }
    if (const Byte* q = match_heads_tails(s, p); q != p) return s.any_case_contraction(q);
    // No tail: heads only.
    const Byte* const heads = may_lead ? next : p;
    if (const Byte* q = s.run_of<kHead>(heads); q != heads) return s.any_case_contraction(q);
  }
  if ((c.kind & kNumber) != 0) return s.up_to_two_numbers(next);
  return match_symbols_or_spaces<true>(s, p);
}

const Byte* match_deepseek_numbers(const Scan& s, const Byte* p) {
  const Char c = s.at(p);
  return (c.kind & kNumber) != 0 ? s.up_to_two_numbers(p + c.bytes) : p;
}

const Byte* match_deepseek_cjk(const Scan& s, const Byte* p) {
  while (p != s.end) {
    const Char c = s.at(p);
    const bool ideograph = c.code >= 0x4E00 && c.code <= 0x9FA5;
    const bool kana = c.code >= 0x3040 && c.code <= 0x30FF;
    if (!ideograph && !kana) break;
    p += c.bytes;
  }
  return p;
}

bool ascii_letter(Byte byte) {
  return (byte | 32) >= 'a' && (byte | 32) <= 'z';
}

const Byte* match_deepseek_words(const Scan& s, const Byte* p) {
  const Char c = s.at(p);
  const Byte* const next = p + c.bytes;
  if (c.code < 0x80 && (c.kind & kSymbol) != 0 && next != s.end && ascii_letter(*next)) {
    const Byte* q = next;
    while (q != s.end && ascii_letter(*q)) ++q;
    return q;
  }
  if ((c.kind & (kLetter | kMark)) != 0) return s.run_of<kLetter | kMark>(next);
  if ((c.kind & (kLineEnd | kSymbol)) == 0 && next != s.end) {
    if (const Byte* q = s.run_of<kLetter | kMark>(next); q != next) return q;
  }
  const Byte* const symbols = *p == ' ' ? next : p;
  if (const Byte* q = s.run_of<kSymbol>(symbols); q != symbols) return s.run_of<kLineEnd>(q);
  return (c.kind & kSpace) != 0 ? s.spaces_or_lines(p) : p;
}

using Piece = FunctionRef<void(size_t begin, size_t end)>;

template <auto kMatch>
void split_with(std::string_view text, Piece piece) {
  const Scan s(text);
  const auto offset = [&](const Byte* p) { return static_cast<size_t>(p - s.begin); };
  const Byte* unmatched = s.begin;
  for (const Byte* p = s.begin; p != s.end;) {
    const Byte* const end = kMatch(s, p);
    if (end == p) {
      p += s.at(p).bytes;
      continue;
    }
    if (unmatched != p) piece(offset(unmatched), offset(p));
    piece(offset(p), offset(end));
    p = unmatched = end;
  }
  if (unmatched != s.end) piece(offset(unmatched), text.size());
}

const Byte* match_single_number(const Scan& s, const Byte* p) {
  const Char c = s.at(p);
  return (c.kind & kNumber) != 0 ? p + c.bytes : p;
}

void split_deepseek_v3(std::string_view text, Piece piece) {
  split_with<match_deepseek_numbers>(text, [&](size_t a, size_t a_end) {
    split_with<match_deepseek_cjk>(text.substr(a, a_end - a), [&](size_t b, size_t b_end) {
      split_with<match_deepseek_words>(text.substr(a + b, b_end - b),
                                       [&](size_t c, size_t c_end) { piece(a + b + c, a + b + c_end); });
    });
  });
}

void split_starcoder(std::string_view text, Piece piece) {
  split_with<match_single_number>(text, [&](size_t a, size_t a_end) {
    split_with<match_gpt2>(text.substr(a, a_end - a), [&](size_t b, size_t b_end) { piece(a + b, a + b_end); });
  });
}

Char char_before(const Byte* begin, const Byte* p) {
  const CharKinds& kinds = CharKinds::table();
  for (ptrdiff_t bytes = 2; bytes <= 4 && bytes <= p - begin; ++bytes) {
    const Char c = kinds.at(p - bytes, p);
    if (c.bytes == bytes) return c;
  }
  return kinds.at(p - 1, p);
}

// GPT-2 can be cut between a word and a following space: no match or lookahead crosses it.
bool cuts_before_space(const Scan& s, const Byte* p) {
  const bool space = *p == ' ' || (*p >= '\t' && *p <= '\r');
  return space && (char_before(s.begin, p).kind & kSpace) == 0;
}

// The other patterns can be cut after a line end that no space follows, for GPT-4o also no slash: a match ends there.
bool cuts_after_line(const Scan& s, const Byte* p) {
  constexpr ptrdiff_t kLongestChar = 4;  // the next character must be complete
  return p[-1] == '\n' && *p != '/' && s.end - p >= kLongestChar && (s.at(p).kind & kSpace) == 0;
}

constexpr std::array<std::string_view, 1> kGpt2 = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kLlama3 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kQwen2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 2> kStarcoder = {R"(\p{N})", kGpt2[0]};
// The last one contains literal line ends, not escapes.
constexpr std::array<std::string_view, 3> kDeepseek = {
    R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};

struct Spelling {
  std::string_view text;
  Pattern pattern;
};

constexpr std::array<Spelling, 10> kSpellings = {{
    {kGpt2[0], Pattern::gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::gpt2},
    {kLlama3[0], Pattern::llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Pattern::llama3},
    {kQwen2[0], Pattern::qwen2},
    {kGpt4o[0], Pattern::gpt4o},
    {kDeepseek[0], Pattern::deepseek_numbers},
    {kDeepseek[1], Pattern::deepseek_cjk},
    {kDeepseek[2], Pattern::deepseek_words},
    {kStarcoder[0], Pattern::single_numbers},
}};

constexpr std::array<Spelling, 6> kPatternNames = {{
    {"gpt2", Pattern::gpt2},
    {"llama3", Pattern::llama3},
    {"qwen2", Pattern::qwen2},
    {"gpt4o", Pattern::gpt4o},
    {"deepseek_v3", Pattern::deepseek_v3},
    {"starcoder", Pattern::starcoder},
}};

std::optional<Pattern> find(std::span<const Spelling> spellings, std::string_view text) {
  for (const Spelling& spelling : spellings) {
    if (spelling.text == text) return spelling.pattern;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Pattern> known_pattern(std::string_view regex) {
  return find(kSpellings, regex);
}

std::optional<Pattern> pattern_by_name(std::string_view name) {
  return find(kPatternNames, name);
}

std::span<const std::string_view> pattern_names() {
  static constexpr auto kTexts = [] {
    std::array<std::string_view, kPatternNames.size()> texts{};
    for (size_t i = 0; i < texts.size(); ++i) texts[i] = kPatternNames[i].text;
    return texts;
  }();
  return kTexts;
}

std::span<const std::string_view> pattern_regexes(Pattern pattern) {
  const std::span<const std::string_view> deepseek = kDeepseek;
  switch (pattern) {
    case Pattern::gpt2:
      return kGpt2;
    case Pattern::llama3:
      return kLlama3;
    case Pattern::qwen2:
      return kQwen2;
    case Pattern::gpt4o:
      return kGpt4o;
    case Pattern::deepseek_numbers:
      return deepseek.subspan(0, 1);
    case Pattern::deepseek_cjk:
      return deepseek.subspan(1, 1);
    case Pattern::deepseek_words:
      return deepseek.subspan(2, 1);
    case Pattern::deepseek_v3:
      return deepseek;
    case Pattern::single_numbers:
      return std::span<const std::string_view>(kStarcoder).first(1);
    case Pattern::starcoder:
      return kStarcoder;
  }
  return {};
}

void split_pattern(Pattern pattern, std::string_view text, Piece piece) {
  switch (pattern) {
    case Pattern::gpt2:
      return split_with<match_gpt2>(text, piece);
    case Pattern::llama3:
      return split_with<match_llama3<true>>(text, piece);
    case Pattern::qwen2:
      return split_with<match_llama3<false>>(text, piece);
    case Pattern::gpt4o:
      return split_with<match_gpt4o>(text, piece);
    case Pattern::deepseek_numbers:
      return split_with<match_deepseek_numbers>(text, piece);
    case Pattern::deepseek_cjk:
      return split_with<match_deepseek_cjk>(text, piece);
    case Pattern::deepseek_words:
      return split_with<match_deepseek_words>(text, piece);
    case Pattern::deepseek_v3:
      return split_deepseek_v3(text, piece);
    case Pattern::single_numbers:
      return split_with<match_single_number>(text, piece);
    case Pattern::starcoder:
      return split_starcoder(text, piece);
  }
}

size_t last_cut(Pattern pattern, std::string_view text) {
  // For these a gap between matches is one piece of any length.
  if (pattern == Pattern::deepseek_numbers || pattern == Pattern::deepseek_cjk || pattern == Pattern::single_numbers) {
    return 0;
  }
  const Scan s(text);
  const bool gpt2 = pattern == Pattern::gpt2 || pattern == Pattern::starcoder;
  const auto cuts = gpt2 ? cuts_before_space : cuts_after_line;
  for (const Byte* p = s.end; p-- > s.begin + 1;) {
    if (cuts(s, p)) return static_cast<size_t>(p - s.begin);
  }
  return 0;
}

}  // namespace qkv
