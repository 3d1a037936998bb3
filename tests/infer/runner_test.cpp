// What is cached, cut into chunks or batched is what a whole pass computes, bit for bit, for every family.
#include "infer/runner.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <list>
#include <thread>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "infer/whole_pass.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/recording_device.h"
#include "support/safetensors_numbers.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

struct Text {
  std::vector<int32_t> ids, source;
};

Text text_for(const ModelSpec& spec, int64_t length, uint32_t seed) {
  Text text{.ids = test::some_ids(length, seed, spec.vocabulary)};
  if (spec.has_source()) {
    text.source = test::some_ids(9 + seed % 5, seed + 1, test::source_words(spec));
  }
  return text;
}

std::vector<float> whole(const Model& model, const Engine& engine, Precision precision, const Text& text) {
  return test::whole_pass(model, engine, precision, text.ids, text.source);
}

Runner::Sequence start(Runner& runner, const Text& text) {
  return text.source.empty() ? runner.start() : runner.start(text.source);
}

std::vector<float> in_chunks(Runner& runner, const Text& text, size_t chunk) {
  const Runner::Sequence sequence = start(runner, text);
  std::vector<float> all;
  for (size_t at = 0; at < text.ids.size(); at += chunk) {
    const size_t count = std::min(chunk, text.ids.size() - at);
    const Runner::Part part{.sequence = sequence,
                            .ids = std::span(text.ids).subspan(at, count),
                            .logits = static_cast<int64_t>(count),
                            .reach = static_cast<int64_t>(text.ids.size())};
    const std::span<const float> logits = runner.pass({&part, 1});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  runner.end(sequence);
  return all;
}

class Family : public testing::TestWithParam<std::string> {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden(GetParam()));
  int64_t length() const { return std::min<int64_t>(checkpoint_.spec.context > 0 ? checkpoint_.spec.context : 80, 80); }
  void expect_forks_apart(const Kernels& table) const;
};
class FamilyOnDevices : public Family {};

// On a GPU passes of few rows are recorded, too: each chunk's second, third and later ones are replayed.
TEST_P(FamilyOnDevices, CachedInChunksIsTheWholePassBitForBit) {
  for (const Kernels* table : test::fastest_tables()) {
    const Engine one(*table, {.threads = 1}), two(*table, {.threads = 2});
    const auto model = checkpoint_.model(one.device());
    const Text text = text_for(model->spec(), length(), 1);
    for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
      const std::vector<float> right = whole(*model, one, precision, text);
      Runner runner(*model, two, {.precision = precision, .cache = precision.compute, .positions = 256});
      for (const size_t chunk : {1UL, 7UL, 33UL, text.ids.size()}) {
        EXPECT_TRUE(in_chunks(runner, text, chunk) == right)
            << table->name << " " << name_of(precision.compute) << " in chunks of " << chunk;
      }
    }
  }
}

TEST_P(Family, RecordedPassesGiveTheSameBits) {
  test::RecordingDevice device;
  const Engine plain(kernels::best_table(), {.threads = 1});
  const Engine engine(test::recording_kernels(), {.threads = 1, .device = &device});
  const auto on_host = checkpoint_.model();
  const auto model = checkpoint_.model(device);
  const Text text = text_for(model->spec(), length(), 1), other = text_for(model->spec(), length() / 5, 4);
  Runner expected(*on_host, plain, {.precision = Precision::bf16(), .positions = 256});
  Runner runner(*model, engine, {.precision = Precision::bf16(), .positions = 256});
  for (const size_t chunk : {1UL, 3UL, 1UL}) {
    EXPECT_TRUE(in_chunks(runner, text, chunk) == in_chunks(expected, text, chunk)) << "in chunks of " << chunk;
    EXPECT_TRUE(in_chunks(runner, other, chunk) == in_chunks(expected, other, chunk)) << "in chunks of " << chunk;
  }
  EXPECT_GT(device.replayed + device.stopped, 0);
}

TEST_P(Family, TheDeviceFindsTheHighestLogits) {
  test::RecordingDevice device;
  const Engine plain(kernels::best_table(), {.threads = 1});
  const Engine engine(test::recording_kernels(), {.threads = 1, .device = &device});
  const auto on_host = checkpoint_.model();
  const auto model = checkpoint_.model(device);
  const Text text = text_for(model->spec(), 12, 1);
  Runner expected(*on_host, plain, {.positions = 64});
  Runner runner(*model, engine, {.positions = 64});
  const Runner::Sequence there = start(expected, text), here = start(runner, text);
  for (const int32_t& id : text.ids) {
    const Runner::Part wanted{.sequence = there, .ids = {&id, 1}}, part{.sequence = here, .ids = {&id, 1}};
    const std::span<const float> logits = expected.pass({&wanted, 1});
    const Runner::Result result = runner.pass({&part, 1}, Runner::Wanted::highest);
    ASSERT_EQ(result.highest.size(), 1U);
    EXPECT_TRUE(result.logits.empty());
    EXPECT_EQ(result.highest[0], std::ranges::max_element(logits) - logits.begin());
    EXPECT_TRUE(expected.pass({&wanted, 1}, Runner::Wanted::highest).highest.empty());  // a table that cannot
    expected.truncate(there, expected.length(there) - 1);
  }
}

TEST_P(FamilyOnDevices, KeysAndValuesInOtherTypesGiveTheSameBitsInAnyChunks) {
  for (const Kernels* table : test::fastest_tables()) {
    const Engine engine(*table, {.threads = 1});
    const auto model = checkpoint_.model(engine.device());
    const Text text = text_for(model->spec(), length(), 2);
    for (const DType cache : {DType::bf16, DType::i8}) {
      SCOPED_TRACE(std::string(table->name) + " " + name_of(cache));
      Runner runner(*model, engine, {.precision = Precision::f32(), .cache = cache, .positions = 128});
      const std::vector<float> right = in_chunks(runner, text, text.ids.size());
      EXPECT_TRUE(in_chunks(runner, text, 1) == right);
      EXPECT_TRUE(in_chunks(runner, text, 13) == right);
      if (model->spec().decoder.layers.back().feed.experts) continue;  // a rounded key may choose another expert
      const Distance off = distance(right, whole(*model, engine, Precision::f32(), text));
      EXPECT_LT(off.nmse, cache == DType::bf16 ? 1e-3 : 2e-2);
      EXPECT_GT(off.nmse, 0);
    }
  }
}

TEST_P(FamilyOnDevices, ForksShareAndDoNotDisturbEachOther) {
  for (const Kernels* table : test::fastest_tables()) expect_forks_apart(*table);
}

void Family::expect_forks_apart(const Kernels& table) const {
  SCOPED_TRACE(table.name);
  const Engine engine(table, {.threads = 1});
  const auto model = checkpoint_.model(engine.device());
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 512});
  Text a = text_for(model->spec(), length(), 3), b = a;
  const size_t same = a.ids.size() / 2;
  const std::vector<int32_t> other = test::some_ids(length(), 9, model->spec().vocabulary);
  std::copy(other.begin() + static_cast<int64_t>(same), other.end(), b.ids.begin() + static_cast<int64_t>(same));
  const auto last = [&](const Runner::Sequence& s, std::span<const int32_t> ids) {
    const auto logits = runner.prefill({.sequence = s, .ids = ids, .reach = length()});
    return std::vector<float>(logits.begin(), logits.end());
  };
  const Runner::Sequence first = start(runner, a);
  last(first, std::span(a.ids).first(same));
  const Runner::Sequence second = runner.fork(first, static_cast<int64_t>(same));
  const auto of_b = last(second, std::span(b.ids).subspan(same));
  const auto of_a = last(first, std::span(a.ids).subspan(same));
  const auto tail = [&](const Text& text) {
    const std::vector<float> all = whole(*model, engine, Precision::f32(), text);
    return std::vector<float>(all.end() - runner.vocabulary(), all.end());
  };
  EXPECT_TRUE(of_a == tail(a));
  EXPECT_TRUE(of_b == tail(b));
  // Cut back and written again, it is what it was.
  if (runner.can_fork(first, static_cast<int64_t>(same))) {
    runner.truncate(first, static_cast<int64_t>(same));
    EXPECT_TRUE(last(first, std::span(b.ids).subspan(same)) == of_b);
  }
  runner.end(first);
  runner.end(second);
  EXPECT_EQ(runner.cache().pages_used(), 0);
}

// Puts a tensor of its own into the stream's place, before every layer.
class OwnStream : public Probe {
 public:
  Ask ask(Place, Site site) const override { return site == Site::resid_pre ? Ask::edit : Ask::none; }
  void visit(Context& cx, const Tap&, Tensor& x) override {
    const Tensor own(storage_.emplace_back(*cx.exec.device, x.dtype(), x.shape()), x.shape());
    cx.kernels.copy(cx.exec, {.y = own, .x = x});
    given_.emplace_back(own, host_floats(own));
    x = own;
  }
  void expect_as_given() const {
    EXPECT_FALSE(given_.empty());
    for (const auto& [own, before] : given_) EXPECT_TRUE(host_floats(own) == before);
  }

 private:
  std::list<Storage> storage_;
  std::vector<std::pair<Tensor, std::vector<float>>> given_;
};

TEST_P(Family, WhatAProbePutsIntoTheStreamStaysItsOwn) {
  const auto model = checkpoint_.model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  const Text text = text_for(model->spec(), 9, 4);
  OwnStream probe;
  RunOptions options{.precision = Precision::f32(), .cache = DType::f32, .positions = 64};
  Runner without(*model, engine, options);
  options.probe = &probe;
  Runner with(*model, engine, options);
  EXPECT_TRUE(in_chunks(with, text, 9) == in_chunks(without, text, 9));
  probe.expect_as_given();
}

INSTANTIATE_TEST_SUITE_P(Goldens, Family, testing::ValuesIn(test::golden_writers()),
                         [](const auto& family) { return family.param; });
INSTANTIATE_TEST_SUITE_P(Goldens, FamilyOnDevices, testing::ValuesIn(test::golden_writers()),
                         [](const auto& family) { return family.param; });

TEST(Runner, RefusesWhatDoesNotFitBeforeItTakesAnyOfIt) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("llama"));
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  const int64_t positions = int64_t{1} << 30;
  expect_error([&] { Runner(*model, engine, {.positions = positions}); },
               {"needs", "positions", std::to_string(positions), "are free"});
  const MemoryNeed need =
      Runner::need(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 64});
  const AttentionSpec& a = model->spec().decoder.layers[0].attention;
  const auto layers = static_cast<int64_t>(model->spec().decoder.layers.size());
  EXPECT_EQ(need.cache, layers * 64 * a.kv_heads * (a.width + a.value_width) * 4);
  EXPECT_GT(need.weights, 0);
  EXPECT_GT(need.pass, 0);
}

// Longrope turns all rows of a text by how long it may get. A recording has the angles of the text it was made of.
TEST(Runner, ALongTextIsNotReplayedFromAShortOne) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("phi3_longrope"));
  test::RecordingDevice device;
  const Engine plain(kernels::best_table(), {.threads = 1});
  const Engine engine(test::recording_kernels(), {.threads = 1, .device = &device});
  const auto on_host = checkpoint.model(), model = checkpoint.model(device);
  Runner expected(*on_host, plain, {.positions = 128}), runner(*model, engine, {.positions = 128});
  const std::vector<int32_t> ids = test::some_ids(6, 1, checkpoint.spec.vocabulary);
  const auto read = [&](Runner& by, int64_t reach) {
    const Runner::Part part{.sequence = by.start(), .ids = ids, .reach = reach};
    const std::span<const float> logits = by.pass({&part, 1});
    by.end(part.sequence);
    return std::vector<float>(logits.begin(), logits.end());
  };
  constexpr int64_t kShort = 6, kLong = 60;
  ASSERT_FALSE(runner.uses_long_rope(kShort));
  ASSERT_TRUE(runner.uses_long_rope(kLong));
  EXPECT_FALSE(read(expected, kShort) == read(expected, kLong));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read(runner, kShort) == read(expected, kShort));
  EXPECT_EQ(device.replayed, 2) << "the second was recorded";
  for (const int64_t reach : {kLong, kLong, kLong, kShort, kLong, kShort}) {
    EXPECT_TRUE(read(runner, reach) == read(expected, reach)) << reach;
  }
}

// As a server and its page, or two models of a program.
TEST(Runner, ThreadsThatShareADeviceTakeTurns) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("llama"));
  const Engine plain(kernels::best_table(), {.threads = 1});
  test::RecordingDevice device;
  std::array<bool, 3> right{};
  const auto write = [&](uint32_t n) {
    const Text text = text_for(checkpoint.spec, 30, n);
    const auto on_host = checkpoint.model();
    Runner expected(*on_host, plain, {.positions = 64});
    const std::vector<float> wanted = in_chunks(expected, text, 1);
    const Engine engine(test::recording_kernels(), {.threads = 1, .device = &device});
    const auto model = checkpoint.model(device);
    Runner runner(*model, engine, {.positions = 64});
    bool same = true;
    for (int i = 0; i < 10; ++i) same = in_chunks(runner, text, 1) == wanted && same;
    right[n] = same;
  };
  std::vector<std::thread> threads;
  for (uint32_t n = 0; n < right.size(); ++n) threads.emplace_back(write, n);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, (std::array{true, true, true}));
  EXPECT_GT(device.replayed, 0);
}

TEST(Runner, AnEncoderAloneWritesNothing) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("bert"));
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  expect_error([&] { Runner(*model, engine, {}); }, {"bert", "writes none"});
}

}  // namespace
}  // namespace qkv
