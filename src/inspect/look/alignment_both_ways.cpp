#include "inspect/look/alignment_both_ways.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/host_values.h"
#include "inspect/heads/head_labels.h"
#include "inspect/look/gold_tokens.h"

namespace qkv {
namespace {

constexpr std::array kLeastMutual{0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6};

using WordWeights = std::vector<std::vector<double>>;  // [target word][source word]; a row may be empty

// The weights of one head from word to word, of every sentence pair.
class WeightProbe : public ReadingProbe {
 public:
  WeightProbe(const AlignmentChoice& choice, std::span<const PairTokens> tokens)
      : choice_(choice), tokens_(tokens), weights_(tokens.size()) {}

  void begin(Context&, const PassTexts& pass) override { pass_ = &pass; }
  Ask ask(Place place, Site site) const override {
    const bool here = place.stack == choice_.head.stack && place.layer == choice_.head.layer;
    return here && site == Site::attn_probs ? Ask::pattern : Ask::none;
  }
  void visit(Context&, const Tap&, Tensor& x) override {
    const std::vector<float> pattern = host_floats(x);  // [N, H, S]
    const auto heads = static_cast<size_t>(x.dim(1)), keys = static_cast<size_t>(x.dim(2));
    for (const auto& [text, rows] : rows_of_texts(*pass_)) {
      const auto row = [&, &mine = rows](size_t position) {
        return pattern.data() + (mine[position] * heads + static_cast<size_t>(choice_.head.head)) * keys;
      };
      for (size_t t = 0; t < tokens_[text].target.size(); ++t) {
        weights_[text].push_back(source_weights(tokens_[text], t, choice_.reading, row));
      }
    }
  }
  const std::vector<WordWeights>& weights() const { return weights_; }

 private:
  AlignmentChoice choice_;
  std::span<const PairTokens> tokens_;
  std::vector<WordWeights> weights_;
  const PassTexts* pass_ = nullptr;
};

std::vector<WordWeights> weights_of(Reader& reader, const PairTokenizers& tokenizers, std::span<const GoldPair> pairs,
                                    const AlignmentChoice& choice) {
  std::vector<PairTokens> tokens;
  std::vector<TokenText> texts;
  for (const GoldPair& pair : pairs) texts.push_back(tokens.emplace_back(tokens_of(tokenizers, pair)).text);
  WeightProbe probe(choice, tokens);
  reader.look(texts, probe);
  return probe.weights();
}

GoldPair turned(const GoldPair& pair) {
  GoldPair made{.source = pair.target, .target = pair.source};
  for (const auto& [from, to] : {std::pair(&pair.links, &made.links), {&pair.possible, &made.possible}}) {
    for (const auto& [s, t] : *from) to->emplace_back(t, s);
    std::sort(to->begin(), to->end());
  }
  return made;
}

}  // namespace

WordPairs mutual_links(const std::vector<std::vector<double>>& there, const std::vector<std::vector<double>>& back,
                       double least) {
  const size_t targets = there.size(), sources = back.size();
  const auto mutual = [&](size_t s, size_t t) {
    return there[t].empty() || back[s].empty() ? 0 : std::sqrt(there[t][s] * back[s][t]);
  };
  std::vector<double> of_source(sources, 0), of_target(targets, 0);
  for (size_t s = 0; s < sources; ++s) {
    for (size_t t = 0; t < targets; ++t) {
      of_source[s] = std::max(of_source[s], mutual(s, t));
      of_target[t] = std::max(of_target[t], mutual(s, t));
    }
  }
  WordPairs links;
  for (size_t s = 0; s < sources; ++s) {
    for (size_t t = 0; t < targets; ++t) {
      const double m = mutual(s, t);
      if (m > 0 && m >= least && (m == of_source[s] || m == of_target[t])) links.emplace_back(s, t);
    }
  }
  return links;
}

BothWaysScore score_both_ways(Reader& reader, const PairTokenizers& tokenizers, std::span<const GoldPair> pairs,
                              const Reader::Finished& finished) {
  std::vector<GoldPair> back;
  for (const GoldPair& pair : pairs) back.push_back(turned(pair));
  BothWaysScore score{.there = score_alignment(reader, tokenizers, pairs, finished),
                      .back = score_alignment(reader, tokenizers, back, finished)};
  const std::vector<WordWeights> there = weights_of(reader, tokenizers, pairs, score.there.choice);
  const std::vector<WordWeights> here = weights_of(reader, tokenizers, back, score.back.choice);
  double best = 2;
  for (const double least : kLeastMutual) {
    std::vector<TextSum> sums;
    for (size_t p = 0; p < pairs.size(); ++p) {
      sums.push_back(error_sum(mutual_links(there[p], here[p], least), pairs[p]));
    }
    const double error = mean_of_half(sums, false);
    if (error >= best) continue;
    best = error;
    score.least = least;
    score.chosen = estimate(of_half(sums, false));
    score.judged = estimate(of_half(sums, true));
  }
  return score;
}

}  // namespace qkv
