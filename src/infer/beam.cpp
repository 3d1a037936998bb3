#include "infer/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "infer/logits.h"

namespace qkv {
namespace {

constexpr int64_t kMostBeams = 256;
constexpr double kNever = -std::numeric_limits<double>::infinity();

void check(const BeamOptions& o, size_t prompt) {
  QKV_CHECK(o.beams >= 1 && o.beams <= kMostBeams, "beams is ", o.beams, " but must be from 1 to ", kMostBeams,
            Hint("4 is usual"));
  QKV_CHECK(o.n_best >= 1 && o.n_best <= o.beams, "n_best is ", o.n_best, " but must be from 1 to beams, which is ",
            o.beams, Hint("more hypotheses need more beams"));
  QKV_CHECK(std::abs(o.length_penalty) <= 100, "length_penalty is ", o.length_penalty, " but must be from -100 to 100",
            Hint("0 takes no account of the length, more favours longer texts"));
  QKV_CHECK(o.repetition_penalty >= 0.01 && o.repetition_penalty <= 100, "repetition_penalty is ", o.repetition_penalty,
            " but must be from 0.01 to 100", Hint("1 is none"));
  QKV_CHECK(o.no_repeat_ngram >= 0, "no_repeat_ngram is ", o.no_repeat_ngram, " but must be at least 0",
            Hint("0 lets everything repeat"));
  QKV_CHECK(prompt > 0, "a beam search needs a prompt of at least 1 token but got 0",
            Hint("a translation starts with the model's decoder_start"));
  QKV_CHECK(o.max_length > static_cast<int64_t>(prompt), "max_length is ", o.max_length, " but the prompt has ", prompt,
            " tokens", Hint("leave room for at least one token"));
}

}  // namespace

BeamSearch::BeamSearch(BeamOptions options, std::vector<int32_t> prompt)
    : options_(std::move(options)), prompt_(static_cast<int64_t>(prompt.size())), length_(prompt_) {
  check(options_, prompt.size());
  std::sort(options_.eos.begin(), options_.eos.end());
  options_.eos.erase(std::unique(options_.eos.begin(), options_.eos.end()), options_.eos.end());
  live_.push_back({.ids = std::move(prompt)});
}

std::optional<int32_t> BeamSearch::forced_token() const {
  if (options_.forced_eos && length_ + 1 == options_.max_length) return options_.forced_eos;
  return length_ == 1 ? options_.forced_bos : std::nullopt;
}

// The best of all beams, best first; of equals the one from the better beam, then the lower id.
std::vector<BeamSearch::Continuation> BeamSearch::continuations(std::span<const float> logits,
                                                                size_t vocabulary) const {
  const auto wanted = static_cast<size_t>(options_.beams) * std::max<size_t>(2, 1 + options_.eos.size());
  check_ids(options_.banned, vocabulary);
  for (const std::optional<int32_t>& forced : {options_.forced_bos, options_.forced_eos}) {
    if (forced) check_ids({&*forced, 1}, vocabulary);
  }
  std::vector<Continuation> all;
  std::vector<double> scores(vocabulary);
  for (size_t b = 0; b < live_.size(); ++b) {
    const Live& beam = live_[b];
    const std::span<const float> row = logits.subspan(b * vocabulary, vocabulary);
    check_logits(row, beam.ids.size());
    check_ids(beam.ids, vocabulary);
    const double log_sum = log_sum_exp(row);
    for (size_t i = 0; i < vocabulary; ++i) scores[i] = static_cast<double>(row[i]) - log_sum;
    penalise_repetition(scores, beam.ids, options_.repetition_penalty);
    forbid_repeated_ngrams(scores, beam.ids, options_.no_repeat_ngram);
    for (const int32_t id : options_.banned) scores[static_cast<size_t>(id)] = kNever;
    if (const std::optional<int32_t> forced = forced_token()) {
      std::fill(scores.begin(), scores.end(), kNever);
      scores[static_cast<size_t>(*forced)] = 0;
    }
    for (const Scored& s : best_of(std::span<const double>(scores), wanted)) {
      all.push_back({.parent = static_cast<int32_t>(b), .id = s.id, .score = beam.score + s.score});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Continuation& a, const Continuation& b) { return a.score > b.score; });
  if (all.size() > wanted) all.resize(wanted);
  return all;
}

bool BeamSearch::ends(const Continuation& c) const {
  return length_ + 1 == options_.max_length || std::binary_search(options_.eos.begin(), options_.eos.end(), c.id);
}

double BeamSearch::judged(double score, int64_t length) const {
  return score / std::pow(static_cast<double>(length - prompt_), options_.length_penalty);
}

bool BeamSearch::can_improve() const {
  if (live_.empty()) return false;
  if (static_cast<int64_t>(finished_.size()) < options_.beams) return true;
  if (options_.early == BeamOptions::Early::yes) return false;
  const bool hope = options_.early == BeamOptions::Early::never && options_.length_penalty > 0;
  return judged(live_[0].score, hope ? options_.max_length : length_) > finished_.back().score;
}

std::vector<BeamSearch::Step> BeamSearch::advance(std::span<const float> logits) {
  QKV_ASSERT(!done(), "the beam search is over but was given ", logits.size(), " logits");
  const size_t vocabulary = logits.size() / live_.size();
  QKV_CHECK(vocabulary > 0 && vocabulary * live_.size() == logits.size(), "there are ", logits.size(), " logits for ",
            live_.size(), " beams", Hint("give one row of logits for each of live()"));
  const auto beams = static_cast<size_t>(options_.beams);
  const std::vector<Continuation> all = continuations(logits, vocabulary);
  std::vector<Live> next;
  std::vector<Step> steps;
  for (size_t i = 0; i < all.size(); ++i) {
    const Continuation& c = all[i];
    const bool ended = ends(c);
    if (ended ? i >= beams : next.size() == beams) continue;
    std::vector<int32_t> ids = live_[static_cast<size_t>(c.parent)].ids;
    ids.push_back(c.id);
    if (ended) {
      finished_.push_back({.ids = std::move(ids), .score = judged(c.score, length_ + 1)});
    } else {
      next.push_back({.ids = std::move(ids), .score = c.score});
      steps.push_back({.parent = c.parent});
    }
  }
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (finished_.size() > beams) finished_.resize(beams);
  live_ = std::move(next);
  ++length_;
  if (!can_improve()) {
    live_.clear();
    steps.clear();
  }
  return steps;
}

std::vector<BeamSearch::Hypothesis> BeamSearch::best() const {
  const size_t n = std::min(finished_.size(), static_cast<size_t>(options_.n_best));
  return {finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace qkv
