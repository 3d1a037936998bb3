#include "labs/learning/small_language.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "labs/shuffle.h"

namespace qkv {
namespace {

// The first word of a kind is the most frequent: 1, 1/2, 1/3, ...
int32_t frequent_first(world::Draw& draw, int32_t count) {
  double all = 0;
  for (int32_t i = 0; i < count; ++i) all += 1.0 / (i + 1);
  double left = all * draw.next() / 4294967296.0;
  for (int32_t i = 0; i + 1 < count; ++i) {
    left -= 1.0 / (i + 1);
    if (left < 0) return i;
  }
  return count - 1;
}

void add_frequent_first(std::vector<float>& p, int32_t first, int32_t count, double share) {
  double all = 0;
  for (int32_t i = 0; i < count; ++i) all += 1.0 / (i + 1);
  for (int32_t i = 0; i < count; ++i) {
    p[static_cast<size_t>(first + i)] += static_cast<float>(share / (i + 1) / all);
  }
}

constexpr std::array<double, 3> kOneMore{0.5, 0.3, 0};  // an adjective after so many

using L = SmallLanguage;

bool is_noun(int32_t word) {
  return word >= L::kNoun && word < L::kName;
}

}  // namespace

std::vector<int32_t> SmallLanguage::text(world::Draw& draw, int32_t length) {
  std::array<int32_t, kNames> names{};  // the first are those of the nouns
  std::iota(names.begin(), names.end(), kName);
  shuffle(draw, names);
  std::vector<int32_t> words{kStop};
  while (std::ssize(words) < length) {
    const int32_t noun = draw.between(0, kClasses * kNouns - 1), kind = noun / kNouns;
    words.push_back(kArticle + kind);
    for (size_t adjectives = 0; draw.below(1000) < static_cast<uint32_t>(1000 * kOneMore[adjectives]); ++adjectives) {
      words.push_back(kAdjective + frequent_first(draw, kAdjectives));
    }
    words.insert(words.end(), {kNoun + noun, names[static_cast<size_t>(noun)],
                               kVerb + kind * kVerbs + frequent_first(draw, kVerbs), kStop});
  }
  words.resize(static_cast<size_t>(length));
  return words;
}

std::vector<std::vector<float>> SmallLanguage::by_grammar(std::span<const int32_t> text) {
  std::vector<std::vector<float>> all;
  int32_t kind = 0;
  size_t adjectives = 0;
  for (const int32_t word : text) {
    std::vector<float>& p = all.emplace_back(static_cast<size_t>(kVocabulary));
    if (word == kStop) {
      for (int32_t c = 0; c < kClasses; ++c) p[static_cast<size_t>(kArticle + c)] = 1.0F / kClasses;
    } else if (word < kNoun) {
      adjectives = word < kAdjective ? 0 : std::min<size_t>(adjectives + 1, kOneMore.size() - 1);
      if (word < kAdjective) kind = word - kArticle;
      add_frequent_first(p, kAdjective, kAdjectives, kOneMore[adjectives]);
      for (int32_t n = 0; n < kNouns; ++n) {
        p[static_cast<size_t>(kNoun + kind * kNouns + n)] = static_cast<float>((1 - kOneMore[adjectives]) / kNouns);
      }
    } else if (is_noun(word)) {
      for (int32_t n = 0; n < kNames; ++n) p[static_cast<size_t>(kName + n)] = 1.0F / kNames;
    } else if (word < kVerb) {  // a name
      add_frequent_first(p, kVerb + kind * kVerbs, kVerbs, 1);
    } else {
      p[kStop] = 1;
    }
  }
  return all;
}

std::vector<bool> SmallLanguage::before_known_name(std::span<const int32_t> text) {
  std::vector<bool> known;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::span<const int32_t> before = text.first(i);
    known.push_back(is_noun(text[i]) && std::find(before.begin(), before.end(), text[i]) != before.end());
  }
  return known;
}

}  // namespace qkv
