#include "infer/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "base/philox.h"
#include "infer/logits.h"

namespace qkv {
namespace {

constexpr uint32_t kChoiceSite = 0x63686f73;  // "chos"
constexpr size_t kMostBiases = 1024;
constexpr int64_t kMostAlternatives = 20;

template <class Number>
struct FieldRange {
  Number low, high;
};

template <class Number>
void check_field(const char* field, Number value, FieldRange<std::type_identity_t<Number>> range, const char* meaning) {
  QKV_CHECK(value >= range.low && value <= range.high, field, " is ", value, " but must be from ", range.low, " to ",
            range.high, Hint(meaning));
}

bool adjusts(const Sampling& s) {
  return !s.logit_bias.empty() || s.repetition_penalty != 1 || s.no_repeat_ngram != 0 || s.presence_penalty != 0 ||
         s.frequency_penalty != 0;
}

// As forbid_repeated_ngrams, unless that leaves no allowed token.
void forbid_ngrams(std::vector<double>& x, const ChoiceInput& input, int64_t n) {
  if (input.allowed == nullptr) return forbid_repeated_ngrams(x, input.history, n);
  std::vector<double> with(x);
  forbid_repeated_ngrams(with, input.history, n);
  for (size_t id = 0; id < x.size(); ++id) {
    if (!input.allowed->has(id) || std::isinf(with[id])) continue;
    x = std::move(with);
    return;
  }
}

std::vector<double> adjusted(const Sampling& sampling, const ChoiceInput& input) {
  std::vector<double> x(input.logits.begin(), input.logits.end());
  for (const auto& [id, bias] : sampling.logit_bias) x[static_cast<size_t>(id)] += bias;
  penalise_repetition(x, input.history, sampling.repetition_penalty);
  forbid_ngrams(x, input, sampling.no_repeat_ngram);
  if (sampling.presence_penalty != 0 || sampling.frequency_penalty != 0) {
    std::vector<int32_t> count(x.size());
    for (const int32_t id : input.history.subspan(input.prompt)) ++count[static_cast<size_t>(id)];
    for (size_t i = 0; i < x.size(); ++i) {
      if (count[i] > 0) x[i] -= sampling.presence_penalty + sampling.frequency_penalty * count[i];
    }
  }
  if (input.allowed == nullptr) return x;
  bool some = false;
  for (size_t id = 0; id < x.size(); ++id) {
    if (!input.allowed->has(id)) x[id] = -std::numeric_limits<double>::infinity();
    some = some || input.allowed->has(id);
  }
  QKV_CHECK(some, "none of the allowed tokens is among the model's ", x.size(),
            Hint("the tokenizer and the model do not belong together"));
  return x;
}

struct Candidate {
  int32_t id = 0;
  double x = 0;       // its logit; when weights are known, their logarithm
  double weight = 0;  // its probability, but for a common factor
  double order = 0;   // what a rule sorts by, smallest first
};

bool before(const Candidate& a, const Candidate& b) {
  return a.order != b.order ? a.order < b.order : a.id < b.id;
}

// In order of ids, as all rules leave them.
template <class Logits>
std::vector<Candidate> candidates(const Logits& x, size_t top_k) {
  std::vector<Candidate> all;
  if (top_k == 0) {
    all.reserve(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      all.push_back({.id = static_cast<int32_t>(i), .x = static_cast<double>(x[i])});
  } else {
    for (const Scored& s : best_of(std::span(std::as_const(x)), top_k)) all.push_back({.id = s.id, .x = s.score});
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
  return all;
}

double total_weight(const std::vector<Candidate>& all) {
  double total = 0;
  for (const Candidate& c : all) total += c.weight;
  return total;
}

// The last of the first ones that together weigh `enough`. Instead of sorting, weights are gathered in buckets, and
// only the bucket in which enough is reached is looked at again. Sums run in order of ids, then of buckets.
Candidate last_of_enough(std::span<const Candidate> rest, double enough) {
  constexpr size_t kBuckets = 1024, kFew = 64;
  std::vector<Candidate> inside;
  double weight = 0;
  while (rest.size() > kFew) {
    double low = rest[0].order, high = low;
    for (const Candidate& c : rest) low = std::min(low, c.order), high = std::max(high, c.order);
    if (low == high) break;  // equals stand in order of ids
    const auto bucket = [=](const Candidate& c) {
      return static_cast<size_t>((c.order - low) / (high - low) * (kBuckets - 1));
    };
    std::array<double, kBuckets> weights{};
    for (const Candidate& c : rest) weights[bucket(c)] += c.weight;
    size_t reached = 0;  // never an empty one: the first and the last have a candidate
    while (reached + 1 < kBuckets && weight + weights[reached] < enough) weight += weights[reached++];
    std::vector<Candidate> next;
    for (const Candidate& c : rest) {
      if (bucket(c) == reached) next.push_back(c);
    }
    inside = std::move(next);
    rest = inside;
  }
  if (rest.size() <= kFew) {
    inside = std::vector<Candidate>(rest.begin(), rest.end());
    std::sort(inside.begin(), inside.end(), before);
    rest = inside;
  }
  for (const Candidate& c : rest) {
    weight += c.weight;
    if (weight >= enough) return c;
  }
  return rest.back();  // but for rounding it would have been reached
}

// Keeps those that come first until they weigh `share` of all, the one that reaches it included.
void keep_share(std::vector<Candidate>& all, double share) {
  const Candidate last = last_of_enough(all, share * total_weight(all));
  std::erase_if(all, [&](const Candidate& c) { return before(last, c); });
}

void keep_typical(std::vector<Candidate>& all, const Sampling& sampling) {
  const double total = total_weight(all), log_total = std::log(total);
  double entropy = 0;
  for (const Candidate& c : all) entropy -= c.weight / total * (c.x - log_total);
  for (Candidate& c : all) c.order = std::abs(log_total - c.x - entropy);
  keep_share(all, sampling.typical_p);
}

// In [0, 1), a multiple of 2^-53.
double uniform(uint64_t seed, uint64_t position) {
  const PhiloxCounter words = random_block(fold({.seed = seed, .site = kChoiceSite}), position, 0);
  return ((words[0] >> 5) * 0x1p26 + (words[1] >> 6)) * 0x1p-53;
}

template <class Logits>
int32_t draw(const Sampling& sampling, const Logits& x, uint64_t position) {
  std::vector<Candidate> all = candidates(x, static_cast<size_t>(sampling.top_k));
  double most = -std::numeric_limits<double>::infinity();
  for (const Candidate& c : all) most = std::max(most, c.x);
  for (Candidate& c : all) {
    c.x = (c.x - most) / sampling.temperature;
    c.order = -c.x;
    c.weight = std::exp(c.x);
  }
  std::erase_if(all, [](const Candidate& c) { return c.weight == 0; });  // what can never be drawn

  if (sampling.top_p < 1) keep_share(all, sampling.top_p);
  if (sampling.min_p > 0) std::erase_if(all, [&](const Candidate& c) { return c.weight < sampling.min_p; });
  if (sampling.typical_p < 1) keep_typical(all, sampling);

  const double target = uniform(sampling.seed, position) * total_weight(all);
  double weight = 0;
  for (const Candidate& c : all) {
    weight += c.weight;
    if (target < weight) return c.id;
  }
  QKV_ASSERT(false, "no token was drawn at position ", position);
  return 0;
}

// Lanes that do not wait for each other.
template <class Number>
Number highest_of(std::span<const Number> x) {
  constexpr size_t kLanes = 32;
  std::array<Number, kLanes> most;
  most.fill(x[0]);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const Number* at = x.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) most[lane] = at[lane] > most[lane] ? at[lane] : most[lane];
  }
  for (; i < x.size(); ++i) most[0] = std::max(most[0], x[i]);
  return *std::max_element(most.begin(), most.end());
}

// Of the highest the first, looked for in the block that has it.
template <class Number>
int32_t first_highest(std::span<const Number> x) {
  constexpr size_t kBlock = 1024;
  Number most = x[0];
  size_t block = 0;
  for (size_t i = 0; i < x.size(); i += kBlock) {
    const Number here = highest_of(x.subspan(i, std::min(kBlock, x.size() - i)));
    if (here > most) {
      most = here;
      block = i;
    }
  }
  return static_cast<int32_t>(std::find(x.begin() + static_cast<std::ptrdiff_t>(block), x.end(), most) - x.begin());
}

template <class Logits>
int32_t picked(const Sampling& sampling, const Logits& x, uint64_t position) {
  return sampling.temperature > 0 ? draw(sampling, x, position) : first_highest(std::span(std::as_const(x)));
}

void add_logprobs(Choice& choice, std::span<const float> logits, int64_t alternatives) {
  const double log_sum = log_sum_exp(logits);
  choice.logprob = static_cast<double>(logits[static_cast<size_t>(choice.id)]) - log_sum;
  for (const Scored& s : best_of(logits, static_cast<size_t>(alternatives))) {
    choice.alternatives.emplace_back(s.id, s.score - log_sum);
  }
}

}  // namespace

bool takes_highest(const Sampling& sampling) {
  return sampling.temperature == 0 && sampling.alternatives < 0 && !adjusts(sampling);
}

void validate(const Sampling& s, int64_t vocabulary) {
  constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
  check_field("temperature", s.temperature, {0, 100}, "0 is greedy, 1 the model's own distribution");
  check_field("top_k", s.top_k, {0, kMaxCount}, "0 keeps all tokens");
  check_field("top_p", s.top_p, {0, 1}, "1 keeps all tokens");
  check_field("min_p", s.min_p, {0, 1}, "0 keeps all tokens");
  check_field("typical_p", s.typical_p, {0, 1}, "1 keeps all tokens");
  check_field("repetition_penalty", s.repetition_penalty, {0.01, 100}, "1 is none, more than 1 repeats less");
  check_field("presence_penalty", s.presence_penalty, {-2, 2}, "0 is none, more than 0 repeats less");
  check_field("frequency_penalty", s.frequency_penalty, {-2, 2}, "0 is none, more than 0 repeats less");
  check_field("no_repeat_ngram", s.no_repeat_ngram, {0, kMaxCount}, "0 lets everything repeat");
  check_field("alternatives", s.alternatives, {-1, kMostAlternatives}, "-1 asks for none");
  check_field("the number of entries of logit_bias", s.logit_bias.size(), {0, kMostBiases},
              "bias the tokens that matter");
  for (const auto& [id, bias] : s.logit_bias) {
    check_field("an id of logit_bias", int64_t{id}, {0, vocabulary - 1}, "ids are those of the tokenizer");
    QKV_CHECK(bias >= -100 && bias <= 100, "logit_bias of token ", id, " is ", bias, " but must be from -100 to 100",
              Hint("-100 all but forbids a token, 100 all but forces it"));
  }
}

Choice choose(const Sampling& sampling, const ChoiceInput& input) {
  check_logits(input.logits, input.history.size());
  check_ids(input.history, input.logits.size());
  QKV_CHECK(input.prompt <= input.history.size(), "the prompt has ", input.prompt, " tokens but the history ",
            input.history.size(), Hint("the history is prompt and answer"));
  const size_t position = input.history.size();
  Choice choice{.id = input.allowed != nullptr || adjusts(sampling)
                          ? picked(sampling, adjusted(sampling, input), position)
                          : picked(sampling, input.logits, position)};
  if (sampling.alternatives >= 0) add_logprobs(choice, input.logits, sampling.alternatives);
  return choice;
}

}  // namespace qkv
