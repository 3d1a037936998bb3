#include "eval/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "eval/ngrams.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// ASCII punctuation except ' , - and .
bool always_splits(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

bool is_stop(char c) {
  return c == '.' || c == ',';
}

// Replaces each matching pair of adjacent bytes, left to right, without overlap.
template <class Match, class Write>
std::string rewrite_pairs(const std::string& text, const Match& match, const Write& write) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && match(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The four rules of mteval-v13a, in order. Working on bytes is safe: only ASCII is separated.
std::string split_punctuation(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (always_splits(c)) {
      out.append({' ', c, ' '});
    } else {
      out += c;
    }
  }
  out = rewrite_pairs(
      out, [](char a, char b) { return !is_digit(a) && is_stop(b); },
      [](std::string& to, char a, char b) {
        to.append({a, ' ', b, ' '});
      });
  out = rewrite_pairs(
      out, [](char a, char b) { return is_stop(a) && !is_digit(b); },
      [](std::string& to, char a, char b) {
        to.append({' ', a, ' ', b});
      });
  return rewrite_pairs(
      out, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](std::string& to, char a, char b) {
        to.append({a, ' ', b, ' '});
      });
}

// sacreBLEU's list. Python parses its two ranges of five hexadecimal digits as four digits and one character, so its
// range of rare ideographs is in fact 2001 to 2A6D: quotation marks, dashes and arrows are separated, rare ideographs
// are not.
bool is_chinese(int32_t c) {
  constexpr std::pair<int32_t, int32_t> kRanges[] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31BF},
      {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

std::string set_chinese_apart(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    const bool apart = utf8_length(character) > 0 && is_chinese(code_point(character));
    if (apart) out += ' ';
    out += character;
    if (apart) out += ' ';
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::vector<std::string> bleu_tokens(std::string_view line, BleuTokenizer tokenizer) {
  std::string text;
  if (tokenizer == BleuTokenizer::chinese) {
    text = set_chinese_apart(line);
  } else {
    text = line;
    replace_all(text, "<skipped>", "");
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
    text = ' ' + text + ' ';
  }
  text = split_punctuation(text);
  const std::vector<std::string_view> words = split_words(text);
  return {words.begin(), words.end()};
}

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < kOrders; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  length += other.length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts bleu_counts(std::string_view hypothesis, std::span<const std::string_view> references,
                       BleuTokenizer tokenizer) {
  WordIds numbers;
  const auto numbered = [&](std::string_view line) {
    const std::vector<std::string> tokens = bleu_tokens(line, tokenizer);
    return numbers.of({tokens.begin(), tokens.end()});
  };
  const std::u32string words = numbered(hypothesis);
  std::vector<std::u32string> wanted;
  for (const std::string_view reference : references) wanted.push_back(numbered(reference));

  BleuCounts counts;
  counts.length = std::ssize(words);
  const auto distance = [&](const std::u32string& reference) {  // closest length; the shorter on a tie
    return std::pair(std::abs(std::ssize(reference) - counts.length), std::ssize(reference));
  };
  if (!wanted.empty()) {
    counts.reference_length = std::ssize(*std::min_element(
        wanted.begin(), wanted.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); }));
  }
  for (size_t n = 1; n <= BleuCounts::kOrders; ++n) {
    NgramCounts most;  // maximum over the references
    for (const std::u32string& reference : wanted) {
      for (const auto& [ngram, count] : count_ngrams(reference, n)) most[ngram] = std::max(most[ngram], count);
    }
    for (const auto& [ngram, count] : count_ngrams(words, n)) {
      const auto found = most.find(ngram);
      counts.total[n - 1] += count;
      counts.correct[n - 1] += found == most.end() ? 0 : std::min(count, found->second);
    }
  }
  return counts;
}

Bleu bleu(const BleuCounts& counts) {
  Bleu out;
  const auto length = static_cast<double>(counts.length), reference = static_cast<double>(counts.reference_length);
  if (counts.length > 0) out.brevity_penalty = length < reference ? std::exp(1.0 - reference / length) : 1.0;
  if (counts.correct[0] == 0) return out;

  double smoothing = 1.0, logs = 0.0;
  for (size_t n = 0; n < BleuCounts::kOrders; ++n) {
    if (counts.total[n] == 0) return out;  // no line is long enough for this order: score 0
    auto correct = static_cast<double>(counts.correct[n]);
    if (counts.correct[n] == 0) correct = 1.0 / (smoothing *= 2.0);
    out.precisions[n] = 100.0 * correct / static_cast<double>(counts.total[n]);
    logs += std::log(out.precisions[n]);
  }
  out.score = out.brevity_penalty * std::exp(logs / static_cast<double>(BleuCounts::kOrders));
  return out;
}

}  // namespace qkv
