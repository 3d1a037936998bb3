// A request's tokens are the same alone, in any batch, with 1 or 2 threads, with its prefix cached or not, in any
// chunks, with or without guessing ahead.
#include "infer/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/expect_error.h"
#include "base/philox.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

struct Written {
  std::vector<int32_t> ids;
  Ended ended = Ended::not_yet;
  std::string error, hint;
  bool operator==(const Written&) const = default;
};

// Requests of many kinds: short and long, greedy and hot, some that share their beginning.
std::vector<SessionOptions> mixed_requests(const ModelSpec& spec, size_t count) {
  std::vector<SessionOptions> requests;
  const auto word = [&](uint64_t row, uint64_t column, uint32_t below) {
    return static_cast<int32_t>(random_u32({1, 2}, row, column) % below);
  };
  const auto vocabulary = static_cast<uint32_t>(spec.vocabulary);
  for (size_t n = 0; n < count; ++n) {
    SessionOptions r;
    const uint64_t family = n % 4 == 0 ? 1000 : n;  // every fourth begins alike
    const auto length = static_cast<uint64_t>(1 + word(n, 0, 70));
    for (uint64_t i = 0; i < length; ++i) r.prompt.push_back(word(i < 40 ? family : n, 1 + i, vocabulary));
    if (spec.has_source()) {
      const auto words = static_cast<uint32_t>(spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
      r.prompt.clear();
      for (uint64_t i = 0; i < length % 20 + 2; ++i) r.source.push_back(word(n, 1 + i, words));
    }
    r.max_new = 4 + word(n, 999, 20);
    r.sampling.seed = n;
    r.sampling.temperature = n % 3 == 0 ? 0 : 0.7 + 0.1 * static_cast<double>(n % 5);
    if (n % 3 == 1) r.sampling.top_k = 20;
    if (n % 3 == 2) r.sampling.top_p = 0.9;
    if (n % 7 == 0) r.sampling.repetition_penalty = 1.2;
    r.draft = n % 2 == 0 ? 4 : 0;
    requests.push_back(std::move(r));
  }
  return requests;
}

std::vector<Written> all_at_once(Runner& runner, const std::vector<SessionOptions>& requests,
                                 const Scheduler::Options& options, Scheduler::Counts* counts = nullptr) {
  std::vector<Written> written(requests.size());
  Scheduler scheduler(runner, options);
  for (size_t n = 0; n < requests.size(); ++n) {
    scheduler.submit({.options = requests[n], .on_end = [&written, n](const Session& s) {
                        written[n] = {s.ids(), s.ended(), s.error(), s.hint()};
                      }});
  }
  scheduler.run();
  if (counts != nullptr) *counts = scheduler.counts();
  return written;
}

Written alone(Runner& runner, SessionOptions options) {
  options.draft = 0;
  Session session(runner, std::move(options));
  while (session.next()) {
  }
  return {session.ids(), session.ended(), session.error(), session.hint()};
}

struct Form {
  const char* name;
  Precision precision;
  DType cache;
  Block block = Block::none;
};

// Weights of attention and feed-forward in fewer bits.
std::unique_ptr<Model> in_form(const Checkpoint& checkpoint, const Engine& engine, const Form& form) {
  Weights weights = checkpoint.weights(engine.device());
  if (form.block == Block::none) return Model::make(checkpoint.spec, std::move(weights));
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  Weights fewer;
  for (auto& [name, weight] : weights) {
    const bool product = name.find(".attn.") != name.npos || name.find(".mlp.") != name.npos;
    const Shape& shape = weight.shape();
    if (!product || shape.rank() < 2 || shape[-1] % 32 != 0 || name.find("router") != name.npos ||
        weight.format().dtype != DType::f32) {
      fewer.add(std::move(weight));
      continue;
    }
    Param& made = fewer.add(Param(name, engine.device(), Format(form.block, 32), shape));
    ops::quantize(cx, made, weight.master());
  }
  return Model::make(checkpoint.spec, std::move(fewer));
}

class Promise : public testing::TestWithParam<std::string> {};

TEST_P(Promise, TokensAreTheSameWhateverRunsBeside) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden(GetParam()));
  const Form forms[] = {{"f32", Precision::f32(), DType::f32},
                        {"bf16", Precision::bf16(), DType::bf16},
                        {"q8", Precision::f32(), DType::i8, Block::q8},
                        {"q4", Precision::bf16(), DType::bf16, Block::q4}};
  const std::vector<SessionOptions> requests = mixed_requests(checkpoint.spec, 64);
  const Kernels& table = kernels::cuda::available() ? kernels::cuda::table() : kernels::best_table();
  const Engine one(table, {.threads = 1}), two(table, {.threads = 2});
  for (const Form& form : forms) {
    const auto model = in_form(checkpoint, one, form);
    const auto options = [&](int64_t positions, int64_t chunk) {
      return RunOptions{.precision = form.precision, .cache = form.cache, .positions = positions, .chunk = chunk};
    };
    Runner single(*model, one, options(128, 128));
    std::vector<Written> right;
    for (const SessionOptions& request : requests) right.push_back(alone(single, request));

    Runner wide(*model, two, options(4096, 64));
    Scheduler::Counts counts;
    EXPECT_TRUE(all_at_once(wide, requests, {.most_active = 32}, &counts) == right) << form.name << ", 32 at once";
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_TRUE(counts.shared > 100 || !requests[0].source.empty()) << form.name << ", no prefix was shared";
    Runner narrow(*model, one, options(256, 5));
    EXPECT_TRUE(all_at_once(narrow, requests, {.most_active = 3, .most_kept = 0}) == right)
        << form.name << ", 3 at once in chunks of 5, nothing kept";
    EXPECT_EQ(narrow.cache().pages_used(), 0) << "pages were lost";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Promise, testing::Values("llama", "gemma2", "mixtral", "bart", "phi3_longrope"),
                         [](const auto& family) { return family.param; });

class SchedulerTest : public testing::Test {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden("llama"));
  std::unique_ptr<Model> model_ = checkpoint_.model();
  Engine engine_{kernels::best_table(), {.threads = 2}};
  Runner runner_{*model_, engine_, {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024}};
  SessionOptions request(uint64_t n) { return mixed_requests(model_->spec(), n + 1).back(); }
};

TEST_F(SchedulerTest, GuessingAheadIsSometimesRightAndNeverChangesTheText) {
  SessionOptions options{.prompt = {5, 6, 7, 8, 5, 6, 7, 8, 5, 6}, .max_new = 60};
  options.sampling.temperature = 0;
  options.eos.emplace();
  const Written right = alone(runner_, options);
  options.draft = 8;
  Scheduler::Counts counts;
  EXPECT_TRUE(all_at_once(runner_, {options}, {}, &counts)[0] == right);
  EXPECT_GT(counts.guessed, 0);
  EXPECT_LE(counts.guessed_right, counts.guessed);
  EXPECT_EQ(counts.passes, 60 - counts.guessed_right);
}

TEST_F(SchedulerTest, CancelledRequestsLeaveAtOnceAndDisturbNobody) {
  std::vector<SessionOptions> requests = mixed_requests(model_->spec(), 12);
  std::vector<Written> right, written(requests.size());
  for (const SessionOptions& r : requests) right.push_back(alone(runner_, r));
  Scheduler scheduler(runner_, {.most_active = 4, .most_kept = 0});
  std::vector<Scheduler::Ticket> tickets;
  for (size_t n = 0; n < requests.size(); ++n) {
    tickets.push_back(scheduler.submit({.options = requests[n], .on_end = [&, n](const Session& s) {
                                          written[n] = {s.ids(), s.ended(), s.error(), s.hint()};
                                        }}));
  }
  scheduler.step();
  scheduler.cancel(tickets[1]);   // running
  scheduler.cancel(tickets[11]);  // waiting
  scheduler.cancel(4711);         // nobody's
  scheduler.run();
  for (size_t n = 0; n < requests.size(); ++n) {
    if (n == 1 || n == 11) {
      EXPECT_EQ(written[n].ended, Ended::cancelled) << n;
    } else {
      EXPECT_TRUE(written[n] == right[n]) << n;
    }
  }
  EXPECT_EQ(runner_.cache().pages_used(), 0);
}

TEST_F(SchedulerTest, AWrongRequestIsRefusedAndAFullQueueSaysSo) {
  Scheduler scheduler(runner_, {.most_active = 1, .most_waiting = 2});
  SessionOptions bad = request(3);
  bad.sampling.temperature = -1;
  EXPECT_THROW(scheduler.submit({.options = bad}), Error);
  bad = request(3);
  bad.prompt.assign(2000, 1);
  expect_error([&] { scheduler.submit({.options = bad}); }, {"2000 tokens", "room for"});
  bad.prompt = {1, 100000};
  expect_error([&] { scheduler.submit({.options = bad}); }, {"100000", "vocabulary"});
  // One runs and two wait, whether or not a pass came between.
  for (const bool stepped : {false, true}) {
    for (uint64_t n = 1; n <= 3; ++n) {
      scheduler.submit({.options = request(n)});
      if (stepped && n == 1) scheduler.step();
    }
    expect_error([&] { scheduler.submit({.options = request(4)}); }, {"queue is full", "3"});
    scheduler.run();
    EXPECT_EQ(scheduler.counts().waiting, 0);
  }
}

TEST_F(SchedulerTest, OtherThreadsMaySubmitAndCancelWhileItRuns) {
  Scheduler scheduler(runner_, {.most_active = 4});
  std::atomic<int> ended = 0;
  std::atomic<bool> stop = false;
  std::thread stepping([&] {
    while (!stop) scheduler.step();
    scheduler.run();
  });
  std::vector<std::thread> clients;
  constexpr int kClients = 3, kEach = 8;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < kEach; ++i) {
        const auto ticket = scheduler.submit(
            {.options = request(static_cast<uint64_t>(c * kEach + i)), .on_end = [&](const Session&) { ++ended; }});
        if (i % 3 == 0) scheduler.cancel(ticket);
        scheduler.counts();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  stepping.join();
  EXPECT_EQ(ended, kClients * kEach);
}

// A probe sees whose rows it looks at.
class WhoseRows : public Probe {
 public:
  Ask ask(Place place, Site site) const override {
    return site == Site::resid_post && place.layer == 0 ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor&) override {
    for (const Segment& s : tap.rows->list) seen[s.request] += s.rows;
  }
  std::map<int32_t, int64_t> seen;
};

TEST_F(SchedulerTest, TapsSeeWhoseRowsTheyAre) {
  WhoseRows probe;
  Runner watched(*model_, engine_,
                 {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024, .probe = &probe});
  Scheduler scheduler(watched, {.most_kept = 0});
  std::map<int32_t, int64_t> rows;
  for (uint64_t n = 1; n < 4; ++n) {
    const SessionOptions options = request(n);
    const auto ticket = scheduler.submit({.options = options, .on_end = [&rows](const Session& s) {
                                            rows[s.request()] = static_cast<int64_t>(s.ids().size()) - 1;
                                          }});
    EXPECT_EQ(ticket, static_cast<int32_t>(n));
  }
  scheduler.run();
  for (const auto& [ticket, count] : rows) EXPECT_GE(probe.seen[ticket], count);
  EXPECT_EQ(probe.seen.size(), 3U);
}

// Makes one request's states nonsense, from its third pass on.
class Spoiler : public Probe {
 public:
  explicit Spoiler(int32_t victim) : victim_(victim) {}
  Ask ask(Place, Site site) const override { return site == Site::final ? Ask::edit : Ask::none; }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    for (const Segment& s : tap.rows->list) {
      if (s.request != victim_ || ++passes_ < 3) continue;
      for (int32_t r = 0; r < s.rows; ++r) x.as<float>()[(s.first_row + r) * x.cols()] = NAN;
    }
  }

 private:
  int32_t victim_;
  int passes_ = 0;
};

TEST_F(SchedulerTest, ARequestThatFailsEndsAlone) {
  Spoiler spoiler(2);
  Runner spoiled(*model_, engine_,
                 {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024, .probe = &spoiler});
  std::vector<SessionOptions> requests = mixed_requests(model_->spec(), 6);
  for (SessionOptions& r : requests) r.eos.emplace();
  const std::vector<Written> written = all_at_once(spoiled, requests, {.most_kept = 0});
  for (size_t n = 0; n < requests.size(); ++n) {
    if (n == 1) {  // the second ticket
      EXPECT_EQ(written[n].ended, Ended::failed);
      EXPECT_NE(written[n].error.find("nan"), std::string::npos) << written[n].error;
      EXPECT_EQ(written[n].error.find('\n'), std::string::npos)
          << "a hint and a place belong to no message: " << written[n].error;
      EXPECT_FALSE(written[n].hint.empty());
    } else {
      EXPECT_TRUE(written[n] == alone(runner_, requests[n])) << n;
    }
  }
  EXPECT_EQ(spoiled.cache().pages_used(), 0);
}

// Whoever asks can tell from the time whether a prefix was there; so only an owner's own texts are.
TEST_F(SchedulerTest, PrefixesAreSharedWithinOneOwnerAlone) {
  SessionOptions request = mixed_requests(model_->spec(), 1).front();
  request.prompt.assign(64, 5);
  Scheduler scheduler(runner_);
  const auto shared_after = [&](int32_t owner) {
    request.owner = owner;
    scheduler.submit({.options = request});
    scheduler.run();
    return scheduler.counts().shared;
  };
  EXPECT_EQ(shared_after(1), 0);
  EXPECT_EQ(shared_after(2), 0);
  EXPECT_EQ(shared_after(1), 63);
  // Not even with one that runs at the same time.
  Scheduler together(runner_);
  for (const int32_t owner : {1, 2}) {
    request.owner = owner;
    together.submit({.options = request});
  }
  together.run();
  EXPECT_EQ(together.counts().shared, 0);
}

TEST_F(SchedulerTest, CountsAreRightAfterTheLastOneIsCancelled) {
  Scheduler scheduler(runner_);
  const Scheduler::Ticket ticket = scheduler.submit({.options = mixed_requests(model_->spec(), 1).front()});
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(scheduler.counts().active, 1);
  EXPECT_GT(scheduler.counts().pages_used, 0);
  scheduler.cancel(ticket);
  EXPECT_FALSE(scheduler.step());
  EXPECT_EQ(scheduler.counts().active, 0);
}

}  // namespace
}  // namespace qkv
