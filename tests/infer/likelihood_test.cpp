// Log-probabilities against those of recorded logits, and against whole passes.
#include "infer/likelihood.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "infer/whole_pass.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "support/pass.h"
#include "support/safetensors_numbers.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

// As it is defined, from a row of logits.
double log_probability(std::span<const float> row, int32_t id) {
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - static_cast<double>(row[0]));
  return static_cast<double>(row[static_cast<size_t>(id)]) - static_cast<double>(row[0]) - std::log(sum);
}

std::vector<double> of_rows(std::span<const float> logits, const Ids& ids, int64_t first = 1) {
  const size_t vocabulary = logits.size() / ids.size();
  std::vector<double> found;
  for (auto i = static_cast<size_t>(first); i < ids.size(); ++i) {
    found.push_back(log_probability(logits.subspan((i - 1) * vocabulary, vocabulary), ids[i]));
  }
  return found;
}

double sum(const std::vector<double>& values) {
  double all = 0;
  for (const double x : values) all += x;
  return all;
}

class LikelihoodOf : public testing::TestWithParam<std::string> {};

TEST_P(LikelihoodOf, IsThatOfTheRecordedLogits) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden(GetParam()));
  const ModelSpec& spec = checkpoint.spec;
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 2});
  const Safetensors io = Safetensors::open(test::golden(GetParam()) / "io.safetensors");
  const bool translates = spec.has_source();
  const RecordedBatch read = recorded_batch(io, "input_ids");
  const RecordedBatch target = translates ? recorded_batch(io, "decoder_input_ids") : read;
  const std::vector<float> logits = recorded_floats(io.at("logits"));
  std::vector<TokenText> texts;
  for (int64_t b = 0; b < target.batch; ++b) {
    TokenText& text = texts.emplace_back();
    text.ids.assign(target.row(b).begin(), target.row(b).end());
    if (translates) text.source.assign(read.row(b).begin(), read.row(b).end());
  }
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 256, .chunk = 64});
  const std::vector<std::vector<double>> found = log_probabilities(runner, texts);
  const size_t each = logits.size() / static_cast<size_t>(target.batch);
  for (size_t b = 0; b < texts.size(); ++b) {
    const std::vector<double> right = of_rows(std::span(logits).subspan(b * each, each), texts[b].ids);
    ASSERT_EQ(found[b].size(), right.size());
    for (size_t i = 0; i < right.size(); ++i)
      EXPECT_NEAR(found[b][i], right[i], 2e-4) << "row " << b << ", token " << i;
    EXPECT_NEAR(sum(found[b]), sum(right), 1e-4 * std::abs(sum(right)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LikelihoodOf, testing::ValuesIn(test::golden_writers()),
                         [](const auto& tested) { return tested.param; });

std::vector<TokenText> some_texts(const ModelSpec& spec) {
  std::vector<TokenText> texts;
  const bool translates = spec.has_source();
  for (uint32_t n = 0; n < 12; ++n) {
    const int64_t length = 2 + n * 17 % 60;
    texts.push_back({.ids = test::some_ids(length, n, spec.vocabulary),
                     .source = translates ? test::some_ids(1 + n * 7 % 40, n, test::source_words(spec)) : Ids{},
                     .first = 1 + n * 5 % (length - 1)});
  }
  texts.push_back({.ids = {3}, .source = translates ? Ids{4} : Ids{}});  // asks nothing
  return texts;
}

// Which angles a text has depends on its whole length, not on the rows read so far: chunks shorter than the original
// context give what one pass gives.
TEST(Likelihood, OfALongTextInShortChunksIsThatOfOnePass) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("phi3_longrope"));  // original context 16
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const int64_t length : {16, 17, 18, 40, 100}) {
    const TokenText text{.ids = test::some_ids(length, static_cast<uint32_t>(length), checkpoint.spec.vocabulary)};
    std::vector<std::vector<double>> first;
    for (const int64_t chunk : {128, 16, 8, 5}) {
      Runner runner(*model, engine,
                    {.precision = Precision::f32(), .cache = DType::f32, .positions = 128, .chunk = chunk});
      const auto found = log_probabilities(runner, std::span(&text, 1));
      if (first.empty()) first = found;
      EXPECT_TRUE(found == first) << length << " tokens in chunks of " << chunk;
    }
  }
}

TEST(Likelihood, IsTheSameInAnyCutAndCompany) {
  for (const char* name : {"llama", "gemma3", "marian"}) {
    const Checkpoint checkpoint = Checkpoint::open(test::golden(name));
    const auto model = checkpoint.model();
    const Engine one(kernels::best_table(), {.threads = 1}), two(kernels::best_table(), {.threads = 2});
    const std::vector<TokenText> texts = some_texts(checkpoint.spec);
    std::vector<std::vector<double>> right;
    for (const TokenText& text : texts) {
      const std::vector<float> logits = test::whole_pass(*model, one, Precision::f32(), text.ids, text.source);
      right.push_back(of_rows(logits, text.ids, text.first));
    }
    const struct {
      int64_t positions, chunk;
      const Engine& engine;
    } cuts[] = {{64, 5, one}, {1024, 200, two}, {96, 64, two}};
    std::vector<std::vector<double>> first;
    for (const auto& cut : cuts) {
      Runner runner(
          *model, cut.engine,
          {.precision = Precision::f32(), .cache = DType::f32, .positions = cut.positions, .chunk = cut.chunk});
      std::vector<size_t> told;
      const auto found = log_probabilities(runner, texts, [&](size_t done) {
        told.push_back(done);
        return true;
      });
      EXPECT_EQ(told.back(), texts.size());
      if (first.empty()) first = found;
      EXPECT_TRUE(found == first) << name << " in chunks of " << cut.chunk;
      for (size_t n = 0; n < texts.size(); ++n) {
        ASSERT_EQ(found[n].size(), right[n].size());
        for (size_t i = 0; i < right[n].size(); ++i) EXPECT_NEAR(found[n][i], right[n][i], 1e-9);
      }
      EXPECT_EQ(runner.cache().pages_used(), 0) << "pages were lost";
    }
  }
}

// Every weight that can be in 8 bits, the head included.
TEST(Likelihood, WorksWithAQuantisedHead) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("qwen3"));
  const Engine engine(kernels::best_table(), {.threads = 1});
  Weights fewer, weights = checkpoint.weights(engine.device());
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  int64_t changed = 0;
  for (auto& [name, weight] : weights) {
    if (weight.shape().rank() < 2 || weight.shape()[-1] % 32 != 0) {
      fewer.add(std::move(weight));
      continue;
    }
    ops::quantize(cx, fewer.add(Param(name, engine.device(), Format(Block::q8, 32), weight.shape())), weight.master());
    changed += name.find("head") != name.npos || name.find("embed") != name.npos;
  }
  EXPECT_GT(changed, 0);
  const auto model = Model::make(checkpoint.spec, std::move(fewer)), exact = checkpoint.model();
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 64, .chunk = 7});
  const TokenText text = some_texts(checkpoint.spec)[3];
  const std::vector<double> found = log_probabilities(runner, {&text, 1})[0];
  const std::vector<double> right =
      of_rows(test::whole_pass(*model, engine, Precision::f32(), text.ids), text.ids, text.first);
  const std::vector<double> before =
      of_rows(test::whole_pass(*exact, engine, Precision::f32(), text.ids), text.ids, text.first);
  EXPECT_NEAR(sum(found), sum(right), 1e-9);
  EXPECT_NE(sum(found), sum(before));
  EXPECT_NEAR(sum(found), sum(before), 0.05 * std::abs(sum(before)));
}

TEST(Likelihood, OfStoriesIsThatOfAWholePass) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 2});
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .chunk = 32});
  // "Once upon a time, there was a little girl named Lily." begins so.
  const TokenText text{.ids = {1, 403, 407, 261, 378}};
  const std::vector<double> found = log_probabilities(runner, {&text, 1})[0];
  const std::vector<double> right = of_rows(test::whole_pass(*model, engine, Precision::f32(), text.ids), text.ids);
  ASSERT_EQ(found.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], right[i], 1e-9);
  EXPECT_GT(std::exp(sum(found) / 4), 0.3) << "what every story begins with should be likely";
}

TEST(Likelihood, RefusesWhatDoesNotFit) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("llama"));
  const auto model = checkpoint.model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 32});
  const auto of = [&](const TokenText& text) { log_probabilities(runner, {&text, 1}); };
  expect_error([&] { of({.ids = Ids(34, 3)}); }, {"text 0 has 34 tokens but the cache has room for 32"});
  expect_error([&] { of({.ids = {1, 100000}}); }, {"token 1 has the id 100000"});
  expect_error([&] { of({.ids = {1, 2}, .source = {3}}); }, {"a source of 1 tokens but a llama has no encoder"});
  of({.ids = Ids(33, 3)});
}

}  // namespace
}  // namespace qkv
