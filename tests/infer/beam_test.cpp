#include "infer/beam.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/expect_error.h"
#include "base/philox.h"

namespace qkv {
namespace beam_test {

using Ids = std::vector<int32_t>;
using Early = BeamOptions::Early;

// A model without weights: logits that depend on every token so far.
struct Table {
  uint64_t seed;
  int32_t vocabulary;
  double sharpness = 1;

  std::vector<float> logits(const Ids& ids) const {
    uint64_t text = seed;
    for (const int32_t id : ids) text = text * 6364136223846793005U + static_cast<uint64_t>(id) + 1;
    std::vector<float> out;
    for (int32_t i = 0; i < vocabulary; ++i) {
      out.push_back(static_cast<float>(sharpness * normal(fold({.seed = text}), 0, static_cast<uint64_t>(i))));
    }
    return out;
  }
  std::vector<double> logprobs(const Ids& ids) const {
    const std::vector<float> x = logits(ids);
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v));
    std::vector<double> out;
    for (const float v : x) out.push_back(static_cast<double>(v) - std::log(sum));
    return out;
  }
};

struct Outcome {
  std::vector<BeamSearch::Hypothesis> best;
  int64_t steps = 0;
};

// Also follows the parents: what lives must be a beam from before and one token.
Outcome searched(const Table& table, const BeamOptions& options, const Ids& prompt) {
  BeamSearch search(options, prompt);
  Outcome run;
  while (!search.done()) {
    std::vector<Ids> before;
    std::vector<float> logits;
    for (const auto& beam : search.live()) {
      before.push_back(beam.ids);
      const std::vector<float> row = table.logits(beam.ids);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    const auto steps = search.advance(logits);
    EXPECT_EQ(steps.size(), search.live().size());
    for (size_t i = 0; i < steps.size(); ++i) {
      Ids ids = search.live()[i].ids;
      ids.pop_back();
      EXPECT_EQ(ids, before[static_cast<size_t>(steps[i].parent)]);
    }
    ++run.steps;
  }
  run.best = search.best();
  return run;
}

void expect_same(const std::vector<BeamSearch::Hypothesis>& got, const std::vector<BeamSearch::Hypothesis>& right) {
  RC_ASSERT(got.size() == right.size());
  for (size_t i = 0; i < got.size(); ++i) {
    RC_ASSERT(got[i].ids == right[i].ids);
    RC_ASSERT(std::abs(got[i].score - right[i].score) < 1e-9 * (1 + std::abs(right[i].score)));
  }
}

// --- all sequences there are
// -------------------------------------------------------------------------------------------

void enumerate(const Table& table, const BeamOptions& o, const BeamSearch::Live& at,
               std::vector<BeamSearch::Hypothesis>& out) {
  const auto length = static_cast<int64_t>(at.ids.size());
  std::vector<double> logprobs = table.logprobs(at.ids);
  for (int32_t id = 0; id < table.vocabulary; ++id) {
    BeamSearch::Live next = at;
    next.ids.push_back(id);
    next.score += logprobs[static_cast<size_t>(id)];
    const bool last = length + 1 == o.max_length;
    if (last && o.forced_eos) {
      if (id != *o.forced_eos) continue;
      next.score = at.score;
    }
    if (last || std::count(o.eos.begin(), o.eos.end(), id) > 0) {
      out.push_back({next.ids, next.score / std::pow(static_cast<double>(length + 1 - 1), o.length_penalty)});
    } else {
      enumerate(table, o, next, out);
    }
  }
}

// With more beams than there are sequences, the search finds the best of all.
TEST(Beam, WideEnoughIsExact) {
  EXPECT_TRUE(rc::check([] {
    const Table table{.seed = *rc::gen::arbitrary<uint64_t>(), .vocabulary = 4};
    BeamOptions o{.beams = 256,
                  .n_best = *rc::gen::inRange<int64_t>(1, 30),
                  .length_penalty = *rc::gen::element(-1.0, 0.0, 0.7, 1.0, 2.0),
                  .early = *rc::gen::element(Early::no, Early::yes, Early::never),
                  .max_length = *rc::gen::inRange<int64_t>(2, 6),
                  .eos = *rc::gen::element(Ids{}, Ids{0}, Ids{2}, Ids{3, 1})};
    if (*rc::gen::arbitrary<bool>()) o.forced_eos = 2;
    std::vector<BeamSearch::Hypothesis> all;
    enumerate(table, o, {.ids = {1}}, all);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    all.resize(std::min(all.size(), static_cast<size_t>(o.n_best)));
    expect_same(searched(table, o, {1}).best, all);
  }));
}

// --- the same search over arrays of fixed size, as the reference does it
// ----------------------------------------------- Here nothing is ever absent: what does not exist yet, has ended, or
// may not end has a score so low that it never wins.

constexpr double kNever = -1e9;

struct Slot {
  Ids ids;
  double score = kNever;
  bool ended = false;
};

std::vector<Slot> highest(std::vector<Slot> all, size_t n) {
  std::stable_sort(all.begin(), all.end(), [](const Slot& a, const Slot& b) { return a.score > b.score; });
  all.resize(n);
  return all;
}

Outcome over_arrays(const Table& table, const BeamOptions& o, const Ids& prompt) {
  const auto beams = static_cast<size_t>(o.beams);
  std::vector<Slot> running(beams, Slot{.ids = prompt}), done(beams, Slot{.ids = prompt});
  running[0].score = 0;
  Outcome run;
  for (bool going = true; going; ++run.steps) {
    std::vector<Slot> all;
    for (const Slot& beam : running) {
      const std::vector<double> logprobs = table.logprobs(beam.ids);
      for (int32_t id = 0; id < table.vocabulary; ++id) {
        Slot next{.ids = beam.ids, .score = beam.score + logprobs[static_cast<size_t>(id)]};
        next.ids.push_back(id);
        next.ended =
            std::count(o.eos.begin(), o.eos.end(), id) > 0 || static_cast<int64_t>(next.ids.size()) == o.max_length;
        all.push_back(next);
      }
    }
    const std::vector<Slot> top = highest(all, beams * std::max<size_t>(2, 1 + o.eos.size()));
    std::vector<Slot> live = top, merged = done;
    bool all_ended = true;
    for (Slot& slot : live) {
      all_ended = all_ended && slot.ended;
      slot.score += slot.ended ? kNever : 0;
    }
    const auto written = static_cast<double>(top[0].ids.size() - prompt.size());
    for (size_t i = 0; i < top.size(); ++i) {
      Slot slot = top[i];
      slot.ended = slot.ended && i < beams;
      slot.score = slot.score / std::pow(written, o.length_penalty) + (slot.ended ? 0 : kNever);
      merged.push_back(slot);
    }
    running = highest(live, beams);
    done = highest(merged, beams);
    const bool full = std::all_of(done.begin(), done.end(), [](const Slot& slot) { return slot.ended; });
    const double length = o.early == Early::never && o.length_penalty > 0
                              ? static_cast<double>(o.max_length) - static_cast<double>(prompt.size())
                              : written;
    const double hope = running[0].score / std::pow(length, o.length_penalty);
    const bool better = hope > (full ? done.back().score : kNever);
    going = better && !(full && o.early == Early::yes) && !all_ended;
  }
  for (size_t i = 0; i < static_cast<size_t>(o.n_best); ++i) run.best.push_back({done[i].ids, done[i].score});
  return run;
}

TEST(Beam, IsTheSearchOverArraysOfFixedSize) {
  std::map<Early, int64_t> steps;
  EXPECT_TRUE(rc::check([&] {
    const Table table{
        .seed = *rc::gen::arbitrary<uint64_t>(), .vocabulary = 16, .sharpness = *rc::gen::element(1.0, 3.0)};
    BeamOptions o{.beams = *rc::gen::inRange<int64_t>(2, 5),
                  .length_penalty = *rc::gen::element(-0.5, 0.0, 0.7, 1.0, 2.0),
                  .max_length = *rc::gen::inRange<int64_t>(4, 16),
                  .eos = *rc::gen::element(Ids{0}, Ids{5}, Ids{3, 11})};
    o.n_best = *rc::gen::inRange<int64_t>(1, o.beams + 1);
    const Ids prompt = *rc::gen::element(Ids{2}, Ids{7, 8, 9});
    std::map<Early, Outcome> runs;
    for (const Early early : {Early::yes, Early::no, Early::never}) {
      o.early = early;
      runs[early] = searched(table, o, prompt);
      const Outcome right = over_arrays(table, o, prompt);
      RC_ASSERT(runs[early].steps == right.steps);
      expect_same(runs[early].best, right.best);
      steps[early] += right.steps;
    }
    RC_ASSERT(runs[Early::yes].steps <= runs[Early::no].steps);
    RC_ASSERT(runs[Early::yes].best[0].score <= runs[Early::no].best[0].score);
  }));
  EXPECT_LT(steps[Early::yes], steps[Early::no]);  // the kinds do differ here
  EXPECT_LE(steps[Early::no], steps[Early::never]);
}

// 500 fixed cases, half of them with penalties where a longer text has no hope of a better score.
TEST(Beam, EndsWhereTheSearchOverArraysEndsWhateverThePenalty) {
  const double penalties[] = {-1, 0.5, -0.5, 1, 0, 2};
  int64_t hopeless = 0;
  for (uint64_t n = 0; n < 500; ++n) {
    const Table table{.seed = n, .vocabulary = 8, .sharpness = n % 3 == 0 ? 3.0 : 1.0};
    BeamOptions o{.beams = 2 + static_cast<int64_t>(n % 3),
                  .n_best = 1 + static_cast<int64_t>(n % 2),
                  .length_penalty = penalties[n % 6],
                  .early = Early::never,
                  .max_length = 6 + static_cast<int64_t>(n % 9),
                  .eos = n % 2 == 0 ? Ids{0} : Ids{3, 5}};
    const Outcome got = searched(table, o, {2}), right = over_arrays(table, o, {2});
    ASSERT_EQ(got.steps, right.steps) << "case " << n << ", length_penalty " << o.length_penalty;
    ASSERT_EQ(got.best.size(), right.best.size());
    for (size_t i = 0; i < got.best.size(); ++i) ASSERT_EQ(got.best[i].ids, right.best[i].ids) << "case " << n;
    hopeless += o.length_penalty <= 0 ? 1 : 0;
  }
  EXPECT_GE(hopeless, 250);
}

// --- by hand
// -----------------------------------------------------------------------------------------------------------

std::vector<float> row(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

TEST(Beam, StepByStep) {  // tokens: 0 ends, 1 and 2 are words
  BeamSearch search({.beams = 2, .n_best = 2, .length_penalty = 1, .max_length = 4, .eos = {0}}, {2});
  ASSERT_EQ(search.live().size(), 1U);
  EXPECT_TRUE(search.best().empty());
  // "." 0.2 is third of three: it ends, but is not among the best two.
  auto steps = search.advance(row({0.2, 0.5, 0.3}));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(search.live()[0].ids, (Ids{2, 1}));
  EXPECT_EQ(search.live()[1].ids, (Ids{2, 2}));
  EXPECT_NEAR(search.live()[0].score, std::log(0.5), 1e-7);
  EXPECT_TRUE(search.best().empty());
  // From 1: .6 ends = .30, 1: .1 = .05, 2: .3 = .15.  From 2: ends .1 = .03, 1: .7 = .21, 2: .2 = .06.
  std::vector<float> logits = row({0.6, 0.1, 0.3}), second = row({0.1, 0.7, 0.2});
  logits.insert(logits.end(), second.begin(), second.end());
  steps = search.advance(logits);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].parent, 1);
  EXPECT_EQ(steps[1].parent, 0);
  EXPECT_EQ(search.live()[0].ids, (Ids{2, 2, 1}));
  EXPECT_EQ(search.live()[1].ids, (Ids{2, 1, 2}));
  ASSERT_EQ(search.best().size(), 1U);
  EXPECT_EQ(search.best()[0].ids, (Ids{2, 1, 0}));
  EXPECT_NEAR(search.best()[0].score, std::log(0.3) / 2, 1e-7);
  // Now all that are among the best two end, by length: 2 2 1 1 = .21 * .8 = .168, 2 1 2 0 = .15 * .9 = .135.
  logits = row({0.1, 0.8, 0.1}), second = row({0.9, 0.05, 0.05});
  logits.insert(logits.end(), second.begin(), second.end());
  EXPECT_TRUE(search.advance(logits).empty());
  EXPECT_TRUE(search.done());
  ASSERT_EQ(search.best().size(), 2U);
  EXPECT_EQ(search.best()[0].ids, (Ids{2, 2, 1, 1}));  // log(.168) / 3 = -.595 and log(.3) / 2 = -.602
  EXPECT_EQ(search.best()[1].ids, (Ids{2, 1, 0}));
}

TEST(Beam, SeveralEndsLeaveEnoughThatGoOn) {  // 3 and 4 end
  BeamSearch search({.beams = 2, .length_penalty = 2, .early = Early::never, .max_length = 20, .eos = {3, 4}}, {0});
  search.advance(row({0.5, 0.4, 0.06, 0.02, 0.02}));
  const std::vector<float> logits = row({0.1, 0.05, 0.05, 0.4, 0.4});
  std::vector<float> both = logits;
  both.insert(both.end(), logits.begin(), logits.end());
  EXPECT_EQ(search.advance(both).size(), 2U);  // although the best four end
}

TEST(Beam, DoesNotRepeatItselfIfAsked) {
  const Table table{.seed = 5, .vocabulary = 6, .sharpness = 2};
  const auto repeats = [](const Ids& ids) {
    std::set<Ids> seen;
    for (size_t i = 0; i + 2 <= ids.size(); ++i) {
      if (!seen.insert({ids[i], ids[i + 1]}).second) return true;
    }
    return false;
  };
  BeamOptions o{.beams = 3, .n_best = 3, .max_length = 25};
  EXPECT_TRUE(repeats(searched(table, o, {1}).best[0].ids));
  o.no_repeat_ngram = 2;
  for (const auto& hypothesis : searched(table, o, {1}).best) EXPECT_FALSE(repeats(hypothesis.ids));
  // A repeated token costs: log(0.6) * 3 < log(0.4).
  BeamSearch search({.beams = 1, .max_length = 2, .repetition_penalty = 3}, {0});
  search.advance(row({0.6, 0.4}));
  EXPECT_EQ(search.best()[0].ids, (Ids{0, 1}));
}

TEST(Beam, RefusesWhatItCannotDo) {
  const auto make = [](const BeamOptions& o, const Ids& prompt) { return [=] { BeamSearch(o, prompt); }; };
  expect_error(make({.beams = 0, .max_length = 9}, {1}), {"beams", "0", "1 to 256"});
  expect_error(make({.beams = 257, .max_length = 9}, {1}), {"beams", "257"});
  expect_error(make({.beams = 4, .n_best = 5, .max_length = 9}, {1}), {"n_best", "5", "4"});
  expect_error(make({.length_penalty = std::nan(""), .max_length = 9}, {1}), {"length_penalty", "nan"});
  expect_error(make({.max_length = 9, .repetition_penalty = 0}, {1}), {"repetition_penalty", "0"});
  expect_error(make({.max_length = 9, .no_repeat_ngram = -1}, {1}), {"no_repeat_ngram", "-1"});
  expect_error(make({.max_length = 9}, {}), {"prompt", "0"});
  expect_error(make({.max_length = 3}, {1, 2, 3}), {"max_length", "3"});
  BeamSearch search({.max_length = 9}, {1});
  expect_error([&] { search.advance({}); }, {"0 logits", "1 beams"});
  expect_error([&] { search.advance(std::vector<float>{1, std::nanf(""), 2}); }, {"token 1", "position 1"});
  BeamSearch forced({.max_length = 2, .forced_eos = 7}, {1});
  expect_error([&] { forced.advance(std::vector<float>{1, 2, 3}); }, {"id 7", "0 to 2"});
}

// Scores stay those of the model: what is left after a ban does not sum to one, and a forced token costs nothing.
TEST(Beam, BansAndForcedTokensKeepTheOtherScores) {
  const Table table{.seed = 5, .vocabulary = 9};
  const BeamOptions options{
      .beams = 3, .n_best = 3, .length_penalty = 0.7, .max_length = 7, .eos = {0}, .forced_bos = 4, .banned = {2, 6}};
  for (const Ids& prompt : {Ids{8}, Ids{8, 3}}) {
    const std::vector<BeamSearch::Hypothesis> best = searched(table, options, prompt).best;
    ASSERT_EQ(best.size(), 3U);
    for (const BeamSearch::Hypothesis& h : best) {
      const size_t free = prompt.size() == 1 ? 2 : prompt.size();  // only after a prompt of one is a token forced
      EXPECT_TRUE(prompt.size() > 1 || h.ids[1] == 4);
      double sum = 0;
      for (size_t i = free; i < h.ids.size(); ++i) {
        EXPECT_TRUE(h.ids[i] != 2 && h.ids[i] != 6);
        sum += table.logprobs({h.ids.begin(), h.ids.begin() + static_cast<int64_t>(i)})[static_cast<size_t>(h.ids[i])];
      }
      EXPECT_NEAR(h.score, sum / std::pow(static_cast<double>(h.ids.size() - prompt.size()), 0.7), 1e-9);
    }
  }
}

}  // namespace beam_test
}  // namespace qkv
