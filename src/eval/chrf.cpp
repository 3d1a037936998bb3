#include "eval/chrf.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "eval/ngrams.h"

namespace qkv {
namespace {

constexpr double kBetaSquared = 4.0;

struct Line {
  std::u32string characters, words;
};

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Splits off a punctuation mark at the end, else at the start, of a longer word as its own word.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (const std::string_view word : split_words(text)) {
    if (word.size() > 1 && is_ascii_punctuation(word.back())) {
      out.insert(out.end(), {word.substr(0, word.size() - 1), word.substr(word.size() - 1)});
    } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
      out.insert(out.end(), {word.substr(0, 1), word.substr(1)});
    } else {
      out.push_back(word);
    }
  }
  return out;
}

Line prepare(std::string_view text, WordIds& numbers) {
  Line line{.characters = {}, .words = numbers.of(words_of(text))};
  for (const std::string_view word : split_words(text)) line.characters += characters_of(word);
  return line;
}

size_t orders(ChrfWords words) {
  return words == ChrfWords::none ? ChrfCounts::kCharacterOrders : ChrfCounts::kOrders;
}

ChrfCounts compare(const Line& hypothesis, const Line& reference, ChrfWords words) {
  ChrfCounts counts;
  for (size_t order = 0; order < orders(words); ++order) {
    const bool of_words = order >= ChrfCounts::kCharacterOrders;
    const size_t n = of_words ? order - ChrfCounts::kCharacterOrders + 1 : order + 1;
    const NgramCounts ours = count_ngrams(of_words ? hypothesis.words : hypothesis.characters, n);
    const NgramCounts theirs = count_ngrams(of_words ? reference.words : reference.characters, n);
    if (theirs.empty()) continue;  // as in sacreBLEU: a line says nothing of an order its reference does not have
    for (const auto& [ngram, count] : ours) {
      const auto found = theirs.find(ngram);
      counts.hypothesis[order] += count;
      counts.matching[order] += found == theirs.end() ? 0 : std::min(count, found->second);
    }
    for (const auto& [ngram, count] : theirs) counts.reference[order] += count;
  }
  return counts;
}

}  // namespace

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  for (size_t order = 0; order < kOrders; ++order) {
    hypothesis[order] += other.hypothesis[order];
    reference[order] += other.reference[order];
    matching[order] += other.matching[order];
  }
  return *this;
}

ChrfCounts chrf_counts(std::string_view hypothesis, std::span<const std::string_view> references, ChrfWords words,
                       ChrfSmoothing smoothing) {
  WordIds numbers;
  const Line ours = prepare(hypothesis, numbers);
  std::optional<ChrfCounts> best;
  for (const std::string_view reference : references) {
    const ChrfCounts counts = compare(ours, prepare(reference, numbers), words);
    if (!best || chrf(counts, words, smoothing) > chrf(*best, words, smoothing)) best = counts;
  }
  return best.value_or(ChrfCounts{});
}

double chrf(const ChrfCounts& counts, ChrfWords words, ChrfSmoothing smoothing) {
  const auto f = [](double precision, double recall) {
    return precision + recall == 0.0 ? 0.0
                                     : (1.0 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall);
  };
  double f_sum = 0.0, precision_sum = 0.0, recall_sum = 0.0;
  int effective = 0;
  for (size_t order = 0; order < orders(words); ++order) {
    if (counts.hypothesis[order] == 0 || counts.reference[order] == 0) continue;
    const auto matching = static_cast<double>(counts.matching[order]);
    const double precision = matching / static_cast<double>(counts.hypothesis[order]);
    const double recall = matching / static_cast<double>(counts.reference[order]);
    f_sum += f(precision, recall);
    precision_sum += precision;
    recall_sum += recall;
    ++effective;
  }
  if (smoothing == ChrfSmoothing::eps) return 100.0 * f_sum / static_cast<double>(orders(words));
  return effective == 0 ? 0.0 : 100.0 * f(precision_sum / effective, recall_sum / effective);
}

}  // namespace qkv
