#include "infer/sampling.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/expect_error.h"
#include "base/philox.h"

namespace qkv {
namespace sampling_test {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Ids = std::vector<int32_t>;

int32_t chosen(const Sampling& sampling, const std::vector<float>& logits, const Ids& history, size_t prompt = 0) {
  return choose(sampling, {.logits = logits, .history = history, .prompt = prompt}).id;
}

// How often each token is drawn by several seeds, each at positions 0 to 499.
std::vector<int64_t> drawn(Sampling sampling, const std::vector<float>& logits, int64_t draws) {
  std::vector<int64_t> count(logits.size());
  const Ids history(500, 0);
  for (int64_t i = 0; i < draws; ++i, sampling.seed += i % 500 == 0 ? 1 : 0) {
    const auto before = std::span(history).first(static_cast<size_t>(i % 500));
    ++count[static_cast<size_t>(choose(sampling, {.logits = logits, .history = before, .prompt = 0}).id)];
  }
  return count;
}

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

// Pearson's sum against its mean (df) and deviation (sqrt(2 df)); seeds are fixed, so this never changes.
void expect_distribution(const std::vector<int64_t>& count, const std::vector<double>& p) {
  const auto draws = static_cast<double>(std::accumulate(count.begin(), count.end(), int64_t{0}));
  double chi = 0, freedom = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(count[i], 0) << "token " << i << " was removed";
      continue;
    }
    const double expected = p[i] * draws, off = static_cast<double>(count[i]) - expected;
    chi += off * off / expected;
    ++freedom;
  }
  EXPECT_LE(chi, freedom + 4 * std::sqrt(2 * freedom) + 1e-9);
}

const std::vector<double> kFive = {0.1, 0.4, 0.05, 0.25, 0.2};

// What is left of kFive after a rule, worked out by hand.
struct Rule {
  std::string name;
  Sampling sampling;
  std::vector<double> left;  // weights, to be normalised
};
void PrintTo(const Rule& rule, std::ostream* out) {
  *out << rule.name;
}
class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, LeaveWhatTheyShould) {
  std::vector<double> p = GetParam().left;
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  expect_distribution(drawn(GetParam().sampling, logits_of(kFive), 10'000), p);
}

// Entropy of kFive is 1.4150; | -log p - H | is 0.8876, 0.4987, 1.5807, 0.0287, 0.1944: the order is 3, 4, 1, 0, 2.
std::vector<Rule> rules() {
  return {{"nothing", {}, kFive},
          {"temperature_half", {.temperature = 0.5}, {1, 16, .25, 6.25, 4}},
          {"temperature_two", {.temperature = 2}, {.316228, .632456, .223607, .5, .447214}},
          {"top_k_2", {.top_k = 2}, {0, 0.4, 0, 0.25, 0}},
          {"top_k_1", {.top_k = 1}, {0, 1, 0, 0, 0}},
          {"top_k_more", {.top_k = 100}, kFive},
          {"top_p_crossing", {.top_p = 0.5}, {0, 0.4, 0, 0.25, 0}},
          {"top_p_just_not", {.top_p = 0.39}, {0, 1, 0, 0, 0}},
          {"top_p_almost_all", {.top_p = 0.94}, {0.1, 0.4, 0, 0.25, 0.2}},
          {"top_p_0", {.top_p = 0}, {0, 1, 0, 0, 0}},
          {"top_p_after_temperature", {.temperature = 0.5, .top_p = 0.57}, {0, 1, 0, 0, 0}},
          {"top_p_after_top_k", {.top_k = 2, .top_p = 0.61}, {0, 1, 0, 0, 0}},
          {"min_p", {.min_p = 0.3}, {0, 0.4, 0, 0.25, 0.2}},
          {"min_p_1", {.min_p = 1}, {0, 1, 0, 0, 0}},
          {"typical_first", {.typical_p = 0.2}, {0, 0, 0, 1, 0}},
          {"typical_crossing", {.typical_p = 0.3}, {0, 0, 0, 0.25, 0.2}},
          {"typical_three", {.typical_p = 0.6}, {0, 0.4, 0, 0.25, 0.2}},
          {"typical_0", {.typical_p = 0}, {0, 0, 0, 1, 0}},
          {"bias", {.logit_bias = {{1, -100}, {2, std::log(4.0)}}}, {0.1, 0, 0.2, 0.25, 0.2}}};
}

INSTANTIATE_TEST_SUITE_P(Of, Rules, testing::ValuesIn(rules()), [](const auto& tested) { return tested.param.name; });

TEST(Sampling, HundredThousandDrawsHaveTheExactDistribution) {
  std::vector<double> p(50);
  for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp(-0.1 * static_cast<double>(i * 7 % 50));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  for (const uint64_t seed : {0U, 1000U, 20261115U}) {
    expect_distribution(drawn({.seed = seed}, logits_of(p), 100'000), p);
  }
}

// --- every setting at once, against full sorts -----------------------------------------------------------------------

std::vector<double> probabilities(const std::vector<double>& x) {  // 0 where x is -infinity
  const double most = *std::max_element(x.begin(), x.end());
  std::vector<double> p;
  for (const double v : x) p.push_back(std::exp(v - most));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= total;
  return p;
}

void keep_first(std::vector<double>& x, const std::vector<double>& key, double mass) {
  const std::vector<double> p = probabilities(x);
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && sum >= mass) x[order[i]] = -kInf;
    sum += p[order[i]];
  }
}

int32_t defined(const Sampling& s, const std::vector<float>& logits, const Ids& history, size_t prompt) {
  std::vector<double> x(logits.begin(), logits.end());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (s.logit_bias.contains(id)) x[i] += s.logit_bias.at(id);
    const auto times = std::count(history.begin(), history.end(), id);
    if (times > 0) x[i] = x[i] > 0 ? x[i] / s.repetition_penalty : x[i] * s.repetition_penalty;
  }
  std::set<int32_t> forbidden;
  if (s.no_repeat_ngram > 0) {
    std::set<Ids> seen;
    const auto n = static_cast<size_t>(s.no_repeat_ngram);
    for (size_t i = 0; i + n <= history.size(); ++i) seen.emplace(&history[i], &history[i] + n);
    for (int32_t id = 0; id < static_cast<int32_t>(x.size()); ++id) {
      Ids longer = history;
      longer.push_back(id);
      if (longer.size() >= n && seen.contains(Ids(longer.end() - static_cast<std::ptrdiff_t>(n), longer.end())))
        forbidden.insert(id);
    }
  }
  if (forbidden.size() < x.size()) {
    for (const int32_t id : forbidden) x[static_cast<size_t>(id)] = -kInf;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto times =
        std::count(history.begin() + static_cast<std::ptrdiff_t>(prompt), history.end(), static_cast<int32_t>(i));
    if (times > 0) x[i] -= s.presence_penalty + s.frequency_penalty * static_cast<double>(times);
  }
  if (s.temperature == 0) return static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
  std::vector<double> key;
  for (double& v : x) {
    v /= s.temperature;
    key.push_back(-v);
  }
  if (s.top_k > 0) {
    std::vector<size_t> order(x.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
    for (size_t i = static_cast<size_t>(s.top_k); i < order.size(); ++i) x[order[i]] = -kInf;
  }
  if (s.top_p < 1) keep_first(x, key, s.top_p);
  std::vector<double> p = probabilities(x);
  const double most = *std::max_element(p.begin(), p.end());
  for (size_t i = 0; i < x.size(); ++i) x[i] = p[i] < s.min_p * most ? -kInf : x[i];
  if (s.typical_p < 1) {
    p = probabilities(x);
    double entropy = 0;
    for (const double v : p) entropy -= v > 0 ? v * std::log(v) : 0;
    for (size_t i = 0; i < p.size(); ++i) key[i] = std::abs(-std::log(p[i]) - entropy);
    keep_first(x, key, s.typical_p);
  }
  p = probabilities(x);
  const PhiloxCounter words = random_block(fold({.seed = s.seed, .site = 0x63686f73}), history.size(), 0);
  double u = ((words[0] >> 5) * 67108864.0 + (words[1] >> 6)) / 9007199254740992.0;
  for (size_t i = 0; i < p.size(); ++i) {
    if ((u -= p[i]) < 0) return static_cast<int32_t>(i);
  }
  return -1;
}

TEST(Sampling, EveryMixtureOfSettingsIsWhatFullSortsSay) {
  EXPECT_TRUE(rc::check([] {
    const auto real = [](double low, double high) { return low + (high - low) * *rc::gen::inRange(0, 1001) / 1000; };
    const auto maybe = [&](double off, double low, double high) {
      return *rc::gen::inRange(0, 2) == 0 ? off : real(low, high);
    };
    const auto width = *rc::gen::element<size_t>(3, 10, 300, 1000);
    std::vector<float> logits(width);
    const bool ties = *rc::gen::arbitrary<bool>();
    const auto key = *rc::gen::arbitrary<uint32_t>();
    for (size_t i = 0; i < width; ++i) {
      const double x = 3 * normal(fold({.seed = key}), 0, i);
      logits[i] = static_cast<float>(ties ? std::round(x) : x);
    }
    const auto vocabulary = static_cast<int32_t>(width);
    const Ids history = *rc::gen::container<Ids>(rc::gen::inRange(0, std::min(vocabulary, 6)));
    const auto prompt = *rc::gen::inRange<size_t>(0, history.size() + 1);
    Sampling s{.temperature = maybe(1, 0, 3),
               .top_k = *rc::gen::inRange<int64_t>(0, 12) * *rc::gen::inRange<int64_t>(0, 12),
               .top_p = maybe(1, 0, 1),
               .min_p = maybe(0, 0, 0.5),
               .typical_p = maybe(1, 0, 1),
               .repetition_penalty = maybe(1, 0.5, 2),
               .presence_penalty = maybe(0, -2, 2),
               .frequency_penalty = maybe(0, -2, 2),
               .no_repeat_ngram = *rc::gen::inRange<int64_t>(0, 4),
               .seed = *rc::gen::arbitrary<uint64_t>()};
    if (*rc::gen::arbitrary<bool>()) s.logit_bias = {{0, real(-5, 5)}, {vocabulary - 1, real(-5, 5)}};
    validate(s, vocabulary);
    RC_ASSERT(chosen(s, logits, history, prompt) == defined(s, logits, history, prompt));
  }));
}

// Many candidates, so near to each other that their order hangs on the last digits: each that should be left is drawn,
// and no other. An outlier makes all others fall into one place of whatever is used to tell them apart quickly.
TEST(Sampling, LeavesExactlyTheRightOnesOfMany) {
  for (const bool outlier : {false, true}) {
    std::vector<float> logits(400);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = 1e-4F * static_cast<float>(i * 37 % 400);
    if (outlier) logits[7] = -30;
    const std::vector<double> x(logits.begin(), logits.end()), p = probabilities(x);
    double entropy = 0;
    for (const double v : p) entropy -= v * std::log(v);
    std::vector<double> likely, typical;
    for (const double v : p) {
      likely.push_back(-v);
      typical.push_back(std::abs(-std::log(v) - entropy));
    }
    for (const double share : {0.03, 0.5, 0.9}) {
      for (const bool by_p : {true, false}) {
        const Sampling s = by_p ? Sampling{.top_p = share} : Sampling{.typical_p = share};
        std::vector<double> left = x;
        keep_first(left, by_p ? likely : typical, share);
        const std::vector<int64_t> count = drawn(s, logits, 8000);
        for (size_t i = 0; i < count.size(); ++i) EXPECT_EQ(count[i] > 0, left[i] > -kInf) << i << " share " << share;
      }
    }
  }
  for (const size_t width : {4U, 128U}) {  // half of them weigh exactly half
    const std::vector<int64_t> count = drawn({.top_p = 0.5}, std::vector<float>(width), 4000);
    for (size_t i = 0; i < width; ++i) EXPECT_EQ(count[i] > 0, i < width / 2) << i << " of " << width;
  }
}

// --- by hand ---------------------------------------------------------------------------------------------------------

TEST(Sampling, PenaltiesByHand) {
  const Sampling greedy{.temperature = 0};
  EXPECT_EQ(chosen(greedy, {1, 3, 3, 2}, {}), 1);  // of equals the lower id
  Sampling s = greedy;
  s.repetition_penalty = 2;  // 3 -> 1.5; once, however often it was said, in the prompt too
  EXPECT_EQ(chosen(s, {1, 3, 1.6F}, {1, 1, 1}, 3), 2);
  EXPECT_EQ(chosen(s, {1, 3, 1.4F}, {1, 1, 1}, 3), 1);
  EXPECT_EQ(chosen(s, {-1.5F, -1, -3}, {1}), 0);  // -1 -> -2
  s = greedy;
  s.presence_penalty = 1;  // once, and only for the answer
  EXPECT_EQ(chosen(s, {1.5F, 2}, {1, 1}, 2), 1);
  EXPECT_EQ(chosen(s, {1.5F, 2}, {1, 1, 1}, 1), 0);
  EXPECT_EQ(chosen(s, {0.9F, 2}, {1, 1, 1}, 1), 1);
  s = greedy;
  s.frequency_penalty = 0.5;  // twice in the answer: 2 -> 1
  EXPECT_EQ(chosen(s, {1.2F, 2}, {1, 1, 1}, 1), 0);
  EXPECT_EQ(chosen(s, {0.9F, 2}, {1, 1, 1}, 1), 1);
  s = greedy;
  s.no_repeat_ngram = 2;
  EXPECT_EQ(chosen(s, {1, 2, 3}, {0, 2, 0}, 0), 1);  // "0 2" was said
  EXPECT_EQ(chosen(s, {1, 2, 3}, {0, 2, 1}, 0), 2);
  s.no_repeat_ngram = 1;
  EXPECT_EQ(chosen(s, {1, 2, 3}, {2, 1}, 0), 0);
  EXPECT_EQ(chosen(s, {1, 2, 3}, {2, 1, 0}, 0), 2);  // all were said: then none is forbidden
}

TEST(Sampling, LogprobsAreTheModelsOwn) {
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.05, 0.25, 0.2});
  const Sampling s{.temperature = 0, .logit_bias = {{2, 100}}, .alternatives = 3};
  const Choice choice = choose(s, {.logits = logits, .history = {}, .prompt = 0});
  EXPECT_EQ(choice.id, 2);
  EXPECT_NEAR(choice.logprob, std::log(0.05), 1e-6);
  ASSERT_EQ(choice.alternatives.size(), 3U);
  const std::vector<std::pair<int32_t, double>> right = {{1, 0.4}, {3, 0.25}, {4, 0.2}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(choice.alternatives[i].first, right[i].first);
    EXPECT_NEAR(choice.alternatives[i].second, std::log(right[i].second), 1e-6);
  }
  Sampling fewer = s;
  fewer.alternatives = 0;
  EXPECT_TRUE(choose(fewer, {.logits = logits, .history = {}, .prompt = 0}).alternatives.empty());
  fewer.alternatives = 20;  // more than there are tokens
  EXPECT_EQ(choose(fewer, {.logits = logits, .history = {}, .prompt = 0}).alternatives.size(), 5U);
}

TEST(Sampling, CoolsDownToGreedy) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(normal(fold({.seed = 4}), 0, i));
  const int32_t best = chosen({.temperature = 0}, logits, {});
  for (const double temperature : {1e-4, 1e-30, 1e-308, 5e-324}) {
    for (size_t position = 0; position < 100; ++position) {
      EXPECT_EQ(chosen({.temperature = temperature, .typical_p = 0.9}, logits, Ids(position, 0)), best);
    }
  }
}

TEST(Sampling, SeedAndPositionAreTheAddressOfTheDraw) {
  const std::vector<float> logits(64);  // all alike
  const auto text = [&](uint64_t seed) {
    Ids ids;
    while (ids.size() < 64) ids.push_back(chosen({.seed = seed}, logits, ids));
    return ids;
  };
  EXPECT_EQ(text(7), text(7));
  EXPECT_NE(text(7), text(8));
  EXPECT_NE(text(7), text(7 + (uint64_t{1} << 32)));
  // Rules that remove nothing change no draw.
  const Ids ids = text(9);
  EXPECT_GT(std::set<int32_t>(ids.begin(), ids.end()).size(), 10U);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Ids history(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(chosen({.top_k = 64, .min_p = 1, .seed = 9}, logits, history), ids[i]);
  }
}

TEST(Sampling, NamesThePositionOfALogitThatIsNoNumber) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    std::vector<float> logits(100);
    logits[42] = bad;
    expect_error([&] { chosen({}, logits, Ids(17, 0)); }, {"token 42", "position 17"});
  }
  expect_error([] { chosen({}, {}, {}); }, {"no logits"});
  expect_error([] { chosen({.repetition_penalty = 2}, {1, 2}, {0, 2}); }, {"token 1", "id 2", "0 to 1"});
  expect_error([] { chosen({.repetition_penalty = 2}, {1, 2}, {-1}); }, {"id -1"});
  expect_error([] { chosen({}, {1, 2}, {0}, 2); }, {"2 tokens", "history 1"});
}

TEST(Sampling, EveryFieldHasARange) {
  const double nan = std::nan("");
  struct Bad {
    Sampling sampling;
    std::vector<std::string> parts;
  };
  std::map<int32_t, double> many;
  for (int32_t i = 0; i < 1025; ++i) many[i] = 1;
  const std::vector<Bad> all = {
      {{.temperature = -0.1}, {"temperature", "-0.1", "0 to 100"}},
      {{.temperature = nan}, {"temperature", "nan"}},
      {{.temperature = 101}, {"temperature", "101"}},
      {{.temperature = kInf}, {"temperature", "inf"}},
      {{.top_k = -1}, {"top_k", "-1", "0 to 2147483647"}},
      {{.top_k = int64_t{1} << 31}, {"top_k", "2147483648"}},
      {{.top_p = -0.5}, {"top_p", "-0.5", "0 to 1"}},
      {{.top_p = 1.5}, {"top_p", "1.5"}},
      {{.top_p = nan}, {"top_p", "nan"}},
      {{.min_p = -0.5}, {"min_p", "-0.5", "0 to 1"}},
      {{.min_p = 2}, {"min_p", "2"}},
      {{.min_p = nan}, {"min_p", "nan"}},
      {{.typical_p = -1}, {"typical_p", "-1", "0 to 1"}},
      {{.typical_p = 1.1}, {"typical_p", "1.1"}},
      {{.typical_p = nan}, {"typical_p", "nan"}},
      {{.repetition_penalty = 0}, {"repetition_penalty", "0", "0.01 to 100"}},
      {{.repetition_penalty = 1000}, {"repetition_penalty", "1000"}},
      {{.repetition_penalty = nan}, {"repetition_penalty", "nan"}},
      {{.presence_penalty = 2.5}, {"presence_penalty", "2.5", "-2 to 2"}},
      {{.presence_penalty = nan}, {"presence_penalty", "nan"}},
      {{.frequency_penalty = -2.5}, {"frequency_penalty", "-2.5", "-2 to 2"}},
      {{.frequency_penalty = nan}, {"frequency_penalty", "nan"}},
      {{.no_repeat_ngram = -3}, {"no_repeat_ngram", "-3", "0 to"}},
      {{.logit_bias = {{2000, 1}}}, {"logit_bias", "2000", "0 to 1999"}},
      {{.logit_bias = {{-1, 1}}}, {"logit_bias", "-1", "0 to 1999"}},
      {{.logit_bias = {{5, 101}}}, {"logit_bias of token 5", "101", "-100 to 100"}},
      {{.logit_bias = {{5, nan}}}, {"logit_bias of token 5", "nan"}},
      {{.logit_bias = many}, {"logit_bias", "1025", "0 to 1024"}},
      {{.alternatives = 21}, {"alternatives", "21", "-1 to 20"}},
      {{.alternatives = -2}, {"alternatives", "-2", "-1 to 20"}},
  };
  for (const Bad& bad : all) {
    const std::optional<Error> error = error_of([&] { validate(bad.sampling, 2000); });
    ASSERT_TRUE(error.has_value()) << bad.parts[0] << " " << bad.parts[1];
    for (const std::string& part : bad.parts)
      EXPECT_NE(error->message().find(part), std::string::npos) << error->what();
  }
  validate({}, 2000);
  many.erase(1024);
  validate({.temperature = 0, .top_k = 5000, .top_p = 0, .min_p = 1, .logit_bias = many, .alternatives = 20}, 2000);
}

}  // namespace sampling_test
}  // namespace qkv
