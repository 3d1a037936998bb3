// Beams over caches find what beams over whole passes find, alone or beside others, bit for bit. That this is what
// Hugging Face finds is for verify_tokens_test.
#include "infer/beam_runner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "infer/session.h"
#include "infer/whole_pass.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
using Found = std::vector<BeamRunner::Hypotheses>;

std::vector<BeamRequest> some_requests(const ModelSpec& spec, uint32_t count) {
  std::vector<BeamRequest> requests;
  for (uint32_t n = 0; n < count; ++n) {
    if (spec.has_source()) {
      requests.push_back({.source = test::some_ids(2 + n * 5 % 23, n + 1, test::source_words(spec))});
    } else {
      requests.push_back({.prompt = test::some_ids(1 + n * 7 % 11, n + 1, spec.vocabulary)});
    }
  }
  return requests;
}

BeamOptions some_options(const ModelSpec& spec) {
  return {.beams = 4,
          .n_best = 3,
          .length_penalty = 1.2,
          .max_length = 20,
          .eos = spec.tokens.eos,
          .forced_eos = spec.tokens.forced_eos};
}

std::string said(const Found& found) {
  std::string text;
  for (const BeamRunner::Hypotheses& of_text : found) {
    for (const BeamSearch::Hypothesis& h : of_text) {
      text += std::to_string(h.score) + ":";
      for (const int32_t id : h.ids) text += " " + std::to_string(id);
      text += "\n";
    }
  }
  return text;
}

bool same(const Found& a, const Found& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const auto& p, const auto& q) { return p.ids == q.ids && p.score == q.score; });
  });
}

Found one_by_one(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options) {
  Found found;
  for (const BeamRequest& request : requests) found.push_back(beam_search(runner, {&request, 1}, options)[0]);
  return found;
}

class BeamFamily : public testing::TestWithParam<std::string> {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden(GetParam()));
  std::unique_ptr<Model> model_ = checkpoint_.model();
  const ModelSpec& spec_ = model_->spec();
  Engine one_{kernels::best_table(), {.threads = 1}}, has_source_{kernels::best_table(), {.threads = 2}};
};

TEST_P(BeamFamily, FindsWhatWholePassesFind) {
  Runner runner(*model_, has_source_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024});
  const std::vector<BeamRequest> requests = some_requests(spec_, 3);
  const Found found = beam_search(runner, requests, some_options(spec_));
  for (size_t i = 0; i < requests.size(); ++i) {
    const Ids prompt = requests[i].prompt.empty() ? Ids{*spec_.tokens.decoder_start} : requests[i].prompt;
    BeamSearch search(some_options(spec_), prompt);
    while (!search.done()) {
      std::vector<float> logits;
      for (const BeamSearch::Live& beam : search.live()) {
        const std::vector<float> all =
            test::whole_pass(*model_, one_, Precision::f32(), beam.ids, requests[i].source, 20);
        logits.insert(logits.end(), all.end() - spec_.vocabulary, all.end());
      }
      search.advance(logits);
    }
    EXPECT_EQ(said({found[i]}), said({search.best()}));
  }
}

TEST_P(BeamFamily, FindsTheSameWhateverRunsBeside) {
  const std::vector<BeamRequest> requests = some_requests(spec_, 9);
  const BeamOptions options = some_options(spec_);
  const struct {
    Precision precision;
    DType cache;
  } forms[] = {{Precision::f32(), DType::f32}, {Precision::bf16(), DType::bf16}, {Precision::f32(), DType::i8}};
  for (const auto& [precision, cache] : forms) {
    const auto runner = [&, precision = precision, cache = cache](const Engine& engine, int64_t positions) {
      return Runner(*model_, engine, {.precision = precision, .cache = cache, .positions = positions, .sources = 192});
    };
    Runner narrow = runner(one_, 128), wide = runner(has_source_, 2048);  // one text at once, eight sources at most
    const Found right = one_by_one(narrow, requests, options);
    BeamRunner one(narrow, requests, options);
    while (one.step()) {
    }
    EXPECT_TRUE(same(one.results(), right)) << name_of(cache);
    EXPECT_EQ(one.most_active(), 1);
    EXPECT_TRUE(same(beam_search(wide, requests, options), right)) << name_of(cache);
    BeamRunner three(wide, requests, options, 13);
    int64_t steps = 0;
    while (three.step()) ++steps;
    EXPECT_TRUE(same(three.results(), right)) << name_of(cache);
    EXPECT_EQ(three.finished(), 9);
    EXPECT_EQ(three.most_active(), 3);
    EXPECT_LT(steps, 9 * 19 / 2);
    EXPECT_EQ(narrow.cache().pages_used() + wide.cache().pages_used(), 0) << "pages were lost";
  }
}

TEST_P(BeamFamily, OneBeamIsGreedy) {
  Runner runner(*model_, has_source_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 512});
  const std::vector<BeamRequest> requests = some_requests(spec_, 6);
  const BeamOptions options{.beams = 1,
                            .early = BeamOptions::Early::yes,
                            .max_length = 20,
                            .eos = spec_.tokens.eos,
                            .forced_eos = spec_.tokens.forced_eos};
  const Found found = beam_search(runner, requests, options);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto length = std::max<int64_t>(std::ssize(requests[i].prompt), 1);
    Session session(runner, {.prompt = requests[i].prompt,
                             .source = requests[i].source,
                             .sampling = {.temperature = 0},
                             .max_new = 20 - length});
    while (session.next()) {
    }
    EXPECT_EQ(found[i].at(0).ids, session.ids());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, BeamFamily,
                         testing::Values("llama", "gemma3", "mixtral", "marian", "bart", "t5_gated", "phi3_longrope"),
                         [](const auto& family) { return family.param; });

class BeamRunnerTest : public testing::Test {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden("marian"));
  std::unique_ptr<Model> model_ = checkpoint_.model();
  Engine engine_{kernels::best_table(), {.threads = 1}};
  Runner runner_{*model_, engine_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 128}};
  std::vector<BeamRequest> requests_ = some_requests(model_->spec(), 2);
  BeamOptions options_ = some_options(model_->spec());
};

TEST_F(BeamRunnerTest, BannedTokensAreNeverWrittenAndForcedOnesAlways) {
  const Found before = beam_search(runner_, requests_, options_);
  for (const BeamSearch::Hypothesis& h : before[0]) {
    options_.banned.insert(options_.banned.end(), h.ids.begin() + 1, h.ids.begin() + 3);
  }
  options_.forced_bos = 77;
  const Found after = beam_search(runner_, requests_, options_);
  for (const BeamSearch::Hypothesis& h : after[0]) {
    EXPECT_EQ(h.ids[1], 77);
    for (const int32_t id : options_.banned) EXPECT_EQ(std::count(h.ids.begin() + 1, h.ids.end(), id), 0);
  }
}

// Token by token the second token is forced as it is in a search.
TEST_F(BeamRunnerTest, ASessionForcesTheSameToken) {
  const SessionOptions options{.source = requests_[0].source, .max_new = 3};
  Session free(runner_, options);
  EXPECT_NE(free.next()->id, 77);
  SessionOptions forced = options;
  forced.forced_bos = 77;
  Session session(runner_, forced);
  EXPECT_EQ(session.next()->id, 77);
  EXPECT_NE(session.next()->id, 77);
  forced.forced_bos = static_cast<int32_t>(runner_.vocabulary());
  expect_error([&] { Session(runner_, forced); }, {"start of the text", std::to_string(runner_.vocabulary())});
}

TEST_F(BeamRunnerTest, RefusesWhatDoesNotFit) {
  const auto search = [&] { beam_search(runner_, requests_, options_); };
  options_.beams = 5;
  expect_error(search, {"5 beams of 20 tokens need 160 positions but the cache has 128"});
  options_.beams = 0;
  expect_error(search, {"beams is 0"});
  options_ = some_options(model_->spec());
  options_.max_length = runner_.context() + 1;
  expect_error(search, {"max_length is", "context has " + std::to_string(runner_.context())});
  options_.max_length = 20;
  options_.banned = {static_cast<int32_t>(runner_.vocabulary())};
  expect_error(search, {"has the id " + std::to_string(runner_.vocabulary())});
  options_.banned = {};
  requests_[1].source.assign(static_cast<size_t>(runner_.context()) + 1, 5);
  expect_error(search, {"text 1: the source has " + std::to_string(runner_.context() + 1)});
  requests_[1].source.assign(3, -1);
  expect_error(search, {"token 0 has the id -1"});
  requests_[1].source.clear();
  expect_error(search, {"text 1: it has a source of 0 tokens but a marian"});
  EXPECT_TRUE(beam_search(runner_, {}, {}).empty());
  EXPECT_EQ(runner_.cache().pages_used(), 0);
}

// Texts with other options come and go between passes; each is found as alone, and what is cancelled leaves no page.
TEST_F(BeamRunnerTest, TextsComeAndGoBetweenPasses) {
  BeamOptions others = options_;
  others.beams = 2;
  others.n_best = 2;
  others.max_length = 9;
  const Found right{beam_search(runner_, {&requests_[0], 1}, options_).front(),
                    beam_search(runner_, {&requests_[1], 1}, others).front()};
  Found found(2);
  BeamRunner run(runner_);
  const auto into = [&](size_t i) {
    return [&found, i](BeamRunner::Hypotheses best, const std::exception_ptr&) { found[i] = std::move(best); };
  };
  const auto unwanted = [](const BeamRunner::Hypotheses&, const std::exception_ptr&) { FAIL() << "it was cancelled"; };
  const BeamRunner::Ticket gone = run.add(requests_[0], options_, unwanted);
  run.add(requests_[0], options_, into(0));
  ASSERT_TRUE(run.step());
  run.add(requests_[1], others, into(1));
  const BeamRunner::Ticket never = run.add(requests_[1], others, unwanted);
  run.cancel(gone);
  run.cancel(never);
  while (run.step()) {
  }
  EXPECT_TRUE(same(found, right));
  EXPECT_EQ(run.unfinished(), 0);
  EXPECT_EQ(runner_.cache().pages_used(), 0);
}

}  // namespace
}  // namespace qkv
