#include "text/tokenizer/training/unigram_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "text/tokenizer/training/unigram_corpus.h"

namespace qkv {
namespace {

constexpr int kStepsPerRound = 2;
constexpr double kShrink = 0.75;  // share of the pieces kept per round
constexpr double kLeastExpected = 0.5;
constexpr double kFinalMargin = 1.1;  // times the vocabulary: from there the last cut is by probability, not by loss

// d/dx log gamma(x) for x > 0: recurrence up to 6, then the asymptotic series.
double digamma(double x) {
  double result = 0;
  for (; x < 6; ++x) result -= 1 / x;
  const double f = 1 / (x * x);
  return result + std::log(x) - 0.5 / x - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f * (1.0 / 240))));
}

uint32_t longest_piece(size_t max_token_length) {
  if (max_token_length == 0) return UnigramCorpus::kLongestPiece;
  return static_cast<uint32_t>(std::min<size_t>(max_token_length, UnigramCorpus::kLongestPiece));
}

class UnigramTrainer {
 public:
  UnigramTrainer(const WordCounts& words, const UnigramTrainerOptions& options, ThreadPool& pool)
      : options_(options), pool_(pool), corpus_(words, {.longest = longest_piece(options.max_token_length)}) {
    while (characters_ < corpus_.pieces() && corpus_.length(static_cast<uint32_t>(characters_)) == 1) ++characters_;
    first_scores();
  }

  TrainedUnigram run() {
    const auto enough = static_cast<size_t>(static_cast<double>(options_.pieces) * kFinalMargin);
    while (corpus_.pieces() != 0) {
      for (int step = 0; step < kStepsPerRound; ++step) improve();
      if (options_.on_round) options_.on_round(corpus_.pieces());
      if (corpus_.pieces() <= enough) break;
      const auto shrunk = static_cast<size_t>(static_cast<double>(corpus_.pieces()) * kShrink);
      prune(std::max(enough, shrunk));
    }
    cut_to(options_.pieces);
    return model();
  }

 private:
  void set_scores(std::span<const double> scores) {
    scores_.assign(scores.begin(), scores.end());
    for (double& score : scores_) score = std::max(score, UnigramCorpus::kLeastScore);
    probabilities_.resize(scores_.size());
    std::transform(scores_.begin(), scores_.end(), probabilities_.begin(),
                   [](double score) { return std::exp(score); });
  }

  // Initial weights: the amount of text they cover.
  void first_scores() {
    std::vector<double> scores(corpus_.pieces());
    for (uint32_t piece = 0; piece < scores.size(); ++piece) {
      scores[piece] = static_cast<double>(corpus_.seed_count(piece)) * corpus_.length(piece);
    }
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (double& score : scores) score = std::log(score / sum);
    set_scores(scores);
  }

  void keep(const std::vector<bool>& marked, std::vector<double>& by_piece) {
    corpus_.keep(marked);
    size_t next = 0;
    for (size_t piece = 0; piece < marked.size(); ++piece) {
      if (marked[piece]) by_piece[next++] = by_piece[piece];
    }
    by_piece.resize(next);
  }

  // One step of expectation maximisation. Digamma instead of the logarithm is the variational form with a sparse prior:
  // it lowers rare pieces further until they drop out.
  void improve() {
    std::vector<double> expected(corpus_.pieces());
    corpus_.add_expected_counts(probabilities_, expected, pool_);
    std::vector<bool> marked(expected.size());
    for (size_t piece = 0; piece < marked.size(); ++piece) {
      marked[piece] = piece < characters_ || expected[piece] >= kLeastExpected;
    }
    keep(marked, expected);
    const double all = digamma(std::accumulate(expected.begin(), expected.end(), 0.0));
    for (double& value : expected) value = digamma(std::max(value, kLeastExpected)) - all;
    set_scores(expected);
  }

  // The loss in log-likelihood of the best segmentations if a piece is replaced by its best split.
  void prune(size_t pieces) {
    std::vector<UnigramCorpus::Use> use(corpus_.pieces());
    corpus_.add_best_path_use(scores_, use, pool_);
    const double all =
        std::accumulate(use.begin(), use.end(), 0.0, [](double s, const auto& u) { return s + u.times; });
    std::vector<double> loss(use.size(),
                             -std::numeric_limits<double>::infinity());  // pieces that no best segmentation uses
    pool_.run(static_cast<int64_t>(use.size()), [&](int64_t task, int) {
      const auto piece = static_cast<uint32_t>(task);
      if (piece < characters_ || use[piece].times == 0) return;
      const std::vector<uint32_t> others = corpus_.best_split_of(piece, scores_);
      const double times = use[piece].times;
      const double log_all = std::log(all + times * (static_cast<double>(others.size()) - 1));
      double without = 0;
      for (const uint32_t other : others) without += std::log(use[other].times + times) - log_all;
      loss[piece] = use[piece].words * (std::log(times) - std::log(all) - without);
    });
    keep_best(loss, pieces);
  }

  void cut_to(size_t pieces) { keep_best(scores_, pieces); }

  // Keeps the characters and, of the others, those with the greatest value.
  void keep_best(const std::vector<double>& value, size_t pieces) {
    std::vector<uint32_t> order(corpus_.pieces() - characters_);
    std::iota(order.begin(), order.end(), static_cast<uint32_t>(characters_));
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return value[a] > value[b]; });
    std::vector<bool> marked(corpus_.pieces());
    std::fill_n(marked.begin(), characters_, true);
    for (size_t i = 0; i < std::min(order.size(), pieces - characters_); ++i) marked[order[i]] = true;
    std::vector<double> scores = scores_;
    keep(marked, scores);
    set_scores(scores);
  }

  // The last steps are plain maximum likelihood: the probabilities of the remaining pieces sum to one.
  TrainedUnigram model() {
    TrainedUnigram model{.stray_bytes = corpus_.stray_bytes()};
    for (int step = 0; step < kStepsPerRound && corpus_.pieces() != 0; ++step) {
      std::vector<double> expected(corpus_.pieces());
      corpus_.add_expected_counts(probabilities_, expected, pool_);
      for (double& value : expected) value = std::max(value, kLeastExpected);
      const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
      for (double& value : expected) value = std::log(value / all);
      set_scores(expected);
    }
    std::vector<double> ignored(corpus_.pieces());
    model.log_likelihood = corpus_.add_expected_counts(probabilities_, ignored, pool_);
    for (uint32_t piece = 0; piece < corpus_.pieces(); ++piece) {
      model.pieces.push_back({corpus_.text(piece), scores_[piece]});
    }
    std::sort(model.pieces.begin(), model.pieces.end(), [](const UnigramPiece& a, const UnigramPiece& b) {
      return a.score != b.score ? a.score > b.score : a.text < b.text;
    });
    return model;
  }

  const UnigramTrainerOptions& options_;
  ThreadPool& pool_;
  UnigramCorpus corpus_;
  size_t characters_ = 0;  // the first pieces, never removed
  std::vector<double> scores_, probabilities_;
};

}  // namespace

TrainedUnigram train_unigram(const WordCounts& words, const UnigramTrainerOptions& options, ThreadPool& pool) {
  // Before the corpus is made, which takes many times the memory of the words.
  const size_t characters = distinct_characters(words);
  QKV_CHECK(options.pieces >= characters, "a vocabulary of ", options.pieces, " pieces cannot hold the ", characters,
            " characters of the corpus", Hint("ask for more, or train on text with fewer characters"));
  return UnigramTrainer(words, options, pool).run();
}

}  // namespace qkv
