#include "text/tokenizer/pipeline/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "support/pass.h"
#include "text/tokenizer/pcre2_split.h"
#include "text/unicode/char_kind.h"

namespace qkv {
namespace {

using test::Pieces;

struct PatternCase {
  Pattern pattern;
  std::vector<std::string> regexes;  // applied in sequence
};

// Every known regular expression of a pattern.
std::vector<PatternCase> all_cases() {
  std::vector<PatternCase> cases;
  for (const Pattern pattern : {Pattern::gpt2, Pattern::llama3, Pattern::qwen2, Pattern::gpt4o,
                                Pattern::deepseek_numbers, Pattern::deepseek_cjk, Pattern::deepseek_words,
                                Pattern::deepseek_v3, Pattern::single_numbers, Pattern::starcoder}) {
    const auto regexes = pattern_regexes(pattern);
    cases.push_back({pattern, {regexes.begin(), regexes.end()}});
  }
  for (
      const char* spelling : {
          R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
          R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
      }) {
    cases.push_back({known_pattern(spelling).value(), {spelling}});
  }
  return cases;
}

Pieces ours(Pattern pattern, std::string_view text) {
  Pieces pieces;
  split_pattern(pattern, text, [&](size_t begin, size_t end) { pieces.emplace_back(text.substr(begin, end - begin)); });
  return pieces;
}

Pieces theirs(const PatternCase& c, std::string_view text) {
  Pieces pieces{std::string(text)};
  for (const std::string& regex : c.regexes) {
    Pieces finer;
    for (const std::string& piece : pieces) {
      for (std::string& part : test::pcre2_split(regex, piece)) finer.push_back(std::move(part));
    }
    pieces = std::move(finer);
  }
  return pieces;
}

void expect_equal(const PatternCase& c, std::string_view text) {
  const Pieces a = ours(c.pattern, text), b = theirs(c, text);
  if (a == b) return;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  ADD_FAILURE() << "pattern " << static_cast<int>(c.pattern) << ", piece " << x - a.begin() << ": ours ["
                << (x == a.end() ? "" : *x) << "] theirs [" << (y == b.end() ? "" : *y) << "] in ["
                << (text.size() < 200 ? text : text.substr(0, 200)) << "]";
}

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6), add(0x80 | (code & 63));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12), add(0x80 | (code >> 6 & 63)), add(0x80 | (code & 63));
  } else {
    add(0xF0 | code >> 18), add(0x80 | (code >> 12 & 63)), add(0x80 | (code >> 6 & 63)), add(0x80 | (code & 63));
  }
}

TEST(Patterns, HandmadeCasesEqualTheRegex) {
  const std::vector<std::string> texts = {
      "",
      " ",
      "  ",
      "\n",
      " \n",
      "\n ",
      "a",
      " a",
      "  a",
      "   a b",
      "a  ",
      "a \n b",
      "a\r\n\r\n  b",
      "\t\tx",
      " \t \n\n \tx",
      "it's I'LL we'Re 'tis 'T '",
      "'s's'S 'll 'lL 'l 'r 're",
      "'\xC5\xBFx IT'\xC5\xBF",
      "don't!! you're?\n\n",
      "12345 1 22 333 4444",
      "a1b22c333",
      "x=1;y+=2;//\n/\n//z",
      "!\n/\r/\n x",
      " /\n//a",
      "HELLOworld HelloWORLD'S iPhone ǅungla",
      "e\xCC\x81"
      "A\xCC\x81X",
      "\xCC\x81"
      "AB",
      " \xCC\x81"
      "AB",
      "漢字かなカナABC漢",
      "你好，世界。  再见",
      "一-龥぀-ゟ゠-ヿ",
      "(naïve) #include <x.h> .net $HOME",
      "①②③④½ Ⅻ ٣٤٥٦",
      "a\xC2\xA0"
      "b\xC2\x85"
      "c\xE2\x80\xA8"
      "d\xE3\x80\x80\xE3\x80\x80"
      "e",
      std::string("a\0b \0\0c", 7),
      "👍🏽 👨‍👩‍👧 🇨🇳",
      "\xE2\x80\x8D x\xE2\x80\x8By",
  };
  for (const PatternCase& c : all_cases()) {
    for (const std::string& text : texts) expect_equal(c, text);
  }
}

TEST(Patterns, RealTextEqualsTheRegex) {
  QKV_NEED_SHARED(folder, "text");
  for (const char* name : {"en/war-and-peace.txt", "en/wikitext2.valid.txt", "en/tinyshakespeare.txt",
                           "zh/tang-poems.txt", "zh/红楼梦.txt"}) {
    std::string text = read_file(folder / name, 100'000'000).substr(0, 150'000);
    while ((static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
    if (static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
    for (const PatternCase& c : all_cases()) expect_equal(c, text);
  }
}

// The code points that match a class, by PCRE2.
std::vector<bool> members(const std::string& regex_class) {
  std::string text;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    append_utf8(text, code);
    text += code == '|' ? "" : "|";
  }
  std::vector<bool> seen(0x110000);
  for (const std::string& piece : test::pcre2_split(regex_class + "(?=\\|)", text)) {
    // A match is one character; a gap starts and ends with a bar.
    const auto* p = reinterpret_cast<const unsigned char*>(piece.data());
    const Char c = CharKinds::table().at(p, p + piece.size());
    if (c.bytes == piece.size() && piece != "|") seen[c.code] = true;
  }
  return seen;
}

// PCRE2's Unicode may be older than utf8proc's, so code points unknown to it are skipped. U+180E is a space for PCRE2
// but not White_Space since Unicode 6.3.
bool comparable(uint32_t code) {
  static const std::vector<bool> unassigned = members("\\p{Cn}");
  return code != 0x180E && code != '|' && (code < 0xD800 || code > 0xDFFF) && !unassigned[code];
}

// Random texts of characters of every class a pattern uses: dense in corner cases.
uint32_t random_code(PhiloxKey key, uint64_t row, uint64_t column) {
  static constexpr uint32_t kFew[] = {'\'', 's',  'S',    'l',    'L',    'r',    'e',   'A',  'b',    '1',     ' ',
                                      '\n', '\r', '\t',   '!',    '/',    0x17F,  0x301, 0xB2, 0x3000, 0x4E2D,  0x3042,
                                      0xE9, 0xC9, 0x01C5, 0x02B0, 0x200D, 0x2028, 0x85,  0xA0, 0x0663, 0x1F44D, ' '};
  const uint32_t random = random_u32(key, row, column * 2);
  if (random % 4 != 0) return kFew[random / 4 % std::size(kFew)];
  const uint32_t any = random_u32(key, row, column * 2 + 1) % 0x110000;
  return comparable(any) ? any : 'x';
}

TEST(Patterns, RandomUnicodeEqualsTheRegex) {
  const std::vector<PatternCase> cases = all_cases();
  for (uint64_t row = 0; row < 1500; ++row) {
    std::string text;
    for (uint64_t column = 0; column < 1 + row % 40; ++column) append_utf8(text, random_code({7, 1}, row, column));
    for (const PatternCase& c : cases) expect_equal(c, text);
    if (HasFailure()) break;
  }
}

TEST(Patterns, EveryCodePointHasTheKindThatPcre2Sees) {
  const std::vector<std::pair<const char*, uint8_t>> classes = {
      {R"([\p{Lu}\p{Lt}])", kUpper},
      {R"(\p{Ll})", kLower},
      {R"([\p{Lm}\p{Lo}])", kOtherLetter},
      {R"(\p{M})", kMark},
      {R"(\p{N})", kNumber},
      {R"([\p{P}\p{S}])", kSymbol},
      {R"(\s)", kSpace},
      {R"([\r\n])", kLineEnd},
  };
  for (const auto& [regex, kind] : classes) {
    const std::vector<bool> seen = members(regex);
    EXPECT_GT(std::count(seen.begin(), seen.end(), true), 1);
    for (uint32_t code = 0; code < 0x110000; ++code) {
      if (!comparable(code)) continue;
      EXPECT_EQ(seen[code], (CharKinds::table().of(code) & kind) != 0) << regex << " U+" << std::hex << code;
    }
  }
}

size_t characters(const std::string& text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  size_t count = 0;
  for (; p != end; ++count) p += CharKinds::table().at(p, end).bytes;
  return count;
}

// A stray byte behaves like a private-use character: no letter, number, space or symbol.
TEST(Patterns, StrayBytesAreCharactersOfNoKind) {
  const std::string stray[] = {
      "\xFF", "\xC0", "\x80", "\xED\xA0\x80", "\xE4\xB8", "\xF0\x9F\x91", "\xF4\x90\x80\x80", "\xC1\xBF"};
  const std::string stand_in = "\xEE\x80\x80";
  for (const PatternCase& c : all_cases()) {
    for (uint64_t row = 0; row < 300; ++row) {
      std::string bad, good;
      for (uint64_t column = 0; column < 1 + row % 12; ++column) {
        const uint32_t random = random_u32({9, 2}, row, column);
        if (random % 3 == 0) {
          const std::string& bytes = stray[random / 3 % std::size(stray)];
          bad += bytes;
          for (size_t i = 0; i < bytes.size(); ++i) good += stand_in;
          bad += 'x', good += 'x';  // so that the next byte does not complete it
        } else {
          const uint32_t code = random_code({9, 3}, row, column);
          append_utf8(bad, code), append_utf8(good, code);
        }
      }
      std::vector<size_t> a, b;
      for (const std::string& piece : ours(c.pattern, bad)) a.push_back(characters(piece));
      for (const std::string& piece : theirs(c, good)) b.push_back(characters(piece));
      ASSERT_EQ(a, b) << "pattern " << static_cast<int>(c.pattern) << " row " << row;
    }
  }
}

TEST(Patterns, PiecesCoverRandomBytes) {
  for (const PatternCase& c : all_cases()) {
    for (uint64_t row = 0; row < 200; ++row) {
      std::vector<char> bytes(row);  // exact heap allocation, so that a sanitizer sees a read past the end
      for (uint64_t i = 0; i < row; ++i) bytes[i] = static_cast<char>(random_u32({11, 4}, row, i));
      size_t done = 0;
      split_pattern(c.pattern, {bytes.data(), bytes.size()}, [&](size_t begin, size_t end) {
        EXPECT_EQ(begin, done);
        EXPECT_LT(begin, end);
        done = end;
      });
      EXPECT_EQ(done, bytes.size());
    }
  }
}

TEST(Patterns, ACutChangesNoPiece) {
  // Texts with special cases around line ends and spaces.
  static constexpr uint32_t kDense[] = {'!', '\n', '/', 'a', ' ', '\r', 0x3000, 0x4E2D, '1', '\n', '\'', 's'};
  for (const PatternCase& c : all_cases()) {
    int cuts = 0;
    for (uint64_t row = 0; row < 4000; ++row) {
      std::string text;
      for (uint64_t column = 0; column < 1 + row % 30; ++column) {
        const uint32_t dense = kDense[random_u32({13, 6}, row, column) % std::size(kDense)];
        append_utf8(text, row % 2 == 0 ? dense : random_code({13, 5}, row, column));
      }
      const size_t seen = text.size() * (row % 7) / 7;  // the rest is not known yet
      const size_t cut = last_cut(c.pattern, std::string_view(text).substr(0, seen));
      if (cut == 0) continue;
      ++cuts;
      Pieces both = ours(c.pattern, std::string_view(text).substr(0, cut));
      for (std::string& piece : ours(c.pattern, std::string_view(text).substr(cut))) both.push_back(std::move(piece));
      ASSERT_EQ(both, ours(c.pattern, text)) << "pattern " << static_cast<int>(c.pattern) << " row " << row;
    }
    const bool never = c.pattern == Pattern::deepseek_numbers || c.pattern == Pattern::deepseek_cjk ||
                       c.pattern == Pattern::single_numbers;
    EXPECT_EQ(cuts > 100, !never) << cuts;
  }
}

TEST(Patterns, AreKnownAsTheFilesSpellThem) {
  QKV_NEED_SHARED(folder, "tokenizers/real");
  const auto split_regexes = [&](const std::string& name) {
    const Json file = parse_json(read_file(folder / name / "tokenizer.json", 100'000'000), name, {.tree = 1 << 30});
    std::vector<std::string> regexes;
    for (const Json& step : file.at("pre_tokenizer").at("pretokenizers")) {
      if (step.at("type") == "Split") regexes.push_back(step.at("pattern").at("Regex"));
    }
    return regexes;
  };
  const auto expect_pattern = [&](const std::string& name, Pattern pattern) {
    const auto regexes = pattern_regexes(pattern);
    EXPECT_EQ(split_regexes(name), std::vector<std::string>(regexes.begin(), regexes.end())) << name;
  };
  expect_pattern("llama3", Pattern::llama3);
  expect_pattern("qwen2_5", Pattern::qwen2);
  expect_pattern("deepseek_v3", Pattern::deepseek_v3);
}

TEST(Patterns, NamesAndSpellingsFindTheirPattern) {
  for (const std::string_view name : pattern_names()) {
    const Pattern pattern = pattern_by_name(name).value();
    const auto regexes = pattern_regexes(pattern);
    if (regexes.size() > 1) continue;
    EXPECT_EQ(known_pattern(regexes[0]), pattern) << name;
  }
  EXPECT_EQ(known_pattern(pattern_regexes(Pattern::deepseek_v3)[2]), Pattern::deepseek_words);
  EXPECT_EQ(known_pattern(R"(\w+)"), std::nullopt);
  EXPECT_EQ(pattern_by_name("deepseek_cjk"), std::nullopt);
}

}  // namespace
}  // namespace qkv
