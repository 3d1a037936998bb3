// Sanity checks that every trainer should pass, on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "kernels/tables.h"
#include "support/fresh_model.h"
#include "support/some_ids.h"
#include "train/schedule.h"
#include "train/step.h"

namespace qkv {
namespace {

using Numbers = std::vector<float>;

Json llama(int64_t vocabulary = 40) {
  return {{"model_type", "llama"},       {"vocab_size", vocabulary},      {"hidden_size", 32},
          {"intermediate_size", 64},     {"num_hidden_layers", 2},        {"num_attention_heads", 4},
          {"num_key_value_heads", 2},    {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-6},
          {"tie_word_embeddings", false}};
}
Json translator() {
  return {{"model_type", "transformer"}, {"vocab_size", 20},         {"d_model", 32},
          {"intermediate_size", 64},     {"num_attention_heads", 4}, {"encoder_layers", 2},
          {"decoder_layers", 2},         {"norm_first", true},       {"dropout", 0.0},
          {"tie_word_embeddings", true}};
}

TrainBatch texts(std::vector<std::vector<int32_t>> lines) {
  TrainBatch batch;
  for (const std::vector<int32_t>& line : lines) {
    batch.ids.insert(batch.ids.end(), line.begin(), line.end() - 1);
    batch.targets.insert(batch.targets.end(), line.begin() + 1, line.end());
    batch.lengths.push_back(static_cast<int32_t>(line.size()) - 1);
  }
  batch.counted = static_cast<int64_t>(batch.targets.size());
  return batch;
}

std::vector<int32_t> some(int64_t count, uint32_t seed, int64_t below = 40) {
  return test::some_ids(count, seed, below);
}

class Checks : public testing::TestWithParam<const Kernels*> {
 protected:
  Engine engine_{*GetParam(), {.threads = 2}};
  Arena arena_{engine_.device()}, gradients_{engine_.device()};

  std::unique_ptr<Model> fresh(const Json& config) const { return test::fresh_model(config, engine_.device()); }
  StepResult step(Model& model, Optimizer& optimizer, std::span<const TrainBatch> batches, StepOptions options) {
    return train_step(engine_, arena_, gradients_, model, optimizer, batches, options);
  }
  // The gradients of a step with learning rate 0.
  std::map<std::string, Numbers> gradients(Model& model, std::span<const TrainBatch> batches,
                                           StepOptions options = {}) {
    Optimizer optimizer(model.spec(), model.weights(), {});
    std::map<std::string, Numbers> all;
    options.before_update = [&](Context&) {
      for (const auto& [name, weight] : model.weights()) {
        if (weight.gradient().defined()) all[name] = host_floats(weight.gradient());
      }
    };
    options.lr = 0;
    step(model, optimizer, batches, options);
    return all;
  }
  Numbers losses(const Model& model, const TrainBatch& batch) {
    arena_.rewind({});
    Context cx = engine_.context(arena_, Precision::f32());
    return host_floats(loss_of(cx, model, batch, {}, {}).losses);
  }
};

double squared_distance(const Numbers& a, const Numbers& b) {
  double wrong = 0, power = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    wrong += std::pow(static_cast<double>(a[i] - b[i]), 2);
    power += std::pow(static_cast<double>(b[i]), 2);
  }
  return power == 0 ? wrong : wrong / power;
}

TEST_P(Checks, TheFirstLossIsThatOfNotKnowing) {
  const auto model = fresh(llama(1000));
  const TrainBatch batch = texts({some(200, 1, 1000), some(200, 2, 1000)});
  arena_.rewind({});
  Context cx = engine_.context(arena_, Precision::f32());
  const Rows rows = Rows::ragged(cx, batch.lengths);
  const Numbers logits = host_floats(model->logits(cx, {.ids = cx.upload(batch.ids), .rows = &rows}));
  double sum = 0, squares = 0;
  for (const float x : logits) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const auto n = static_cast<double>(logits.size());
  const double expected = std::log(1000.0) + (squares / n - sum / n * sum / n) / 2;
  double loss = 0;
  for (const float nats : losses(*model, batch)) loss += static_cast<double>(nats);
  loss /= static_cast<double>(batch.counted);
  EXPECT_NEAR(loss, expected, 0.02 * expected);
}

TEST_P(Checks, OneBatchIsLearntByHeart) {
  for (const auto kind : {OptimizerSpec::Kind::adamw, OptimizerSpec::Kind::muon}) {
    const auto model = fresh(llama());
    Optimizer optimizer(model->spec(), model->weights(), {.kind = kind, .decay = 0});
    const TrainBatch batch = texts({some(17, 5), some(17, 6)});
    double loss = 0;
    for (uint64_t s = 0; s < 150; ++s) {
      loss =
          step(*model, optimizer, {&batch, 1}, {.precision = Precision::bf16(), .lr = 1e-2, .clip = 1, .step = s}).loss;
    }
    EXPECT_LT(loss, 0.01) << name_of(kind);
  }
}

// Reversing a line needs every word of the source: with another source it cannot be learnt.
TEST_P(Checks, ReversingIsLearntFromTheSourceAndOnlyFromIt) {
  const auto final_loss = [&](bool shuffled) {
    const auto model = fresh(translator());
    Optimizer optimizer(model->spec(), model->weights(), {.decay = 0});
    double loss = 0;
    for (uint32_t s = 0; s < 400; ++s) {
      TrainBatch batch;
      for (uint32_t n = 0; n < 16; ++n) {
        const std::vector<int32_t> line = some(6, s * 100 + n, 18);
        const std::vector<int32_t> source = shuffled ? some(6, s * 100 + n + 50, 18) : line;
        batch.source_ids.insert(batch.source_ids.end(), source.begin(), source.end());
        batch.source_lengths.push_back(6);
        std::vector<int32_t> target(line.rbegin(), line.rend());
        batch.ids.push_back(19);
        batch.ids.insert(batch.ids.end(), target.begin(), target.end() - 1);
        batch.targets.insert(batch.targets.end(), target.begin(), target.end());
        batch.lengths.push_back(6);
      }
      batch.counted = static_cast<int64_t>(batch.targets.size());
      const double lr = 5e-3 * std::min(1.0, (s + 1) / 40.0) * (s < 300 ? 1 : 0.2);
      loss = step(*model, optimizer, {&batch, 1}, {.lr = lr, .clip = 1, .step = s}).loss;
    }
    return loss;
  };
  EXPECT_LT(final_loss(false), 0.05);
  EXPECT_GT(final_loss(true), 2.0);
}

TEST_P(Checks, MicroBatchesOfUnequalSizeAreOneBigBatch) {
  const auto model = fresh(llama());
  const std::vector<std::vector<int32_t>> lines{some(9, 1), some(33, 2), some(5, 3), some(17, 4)};
  std::vector<TrainBatch> parts;
  for (const auto& line : lines) parts.push_back(texts({line}));
  const TrainBatch whole = texts(lines);
  const auto together = gradients(*model, {&whole, 1}), apart = gradients(*model, parts);
  ASSERT_EQ(together.size(), apart.size());
  for (const auto& [name, gradient] : together) EXPECT_LT(squared_distance(apart.at(name), gradient), 1e-11) << name;
}

// The sum of two halves of the tree, as two ranks would compute it.
TEST_P(Checks, HalvesOfTheTreeAddUpToItsBits) {
  const auto model = fresh(llama());
  std::vector<TrainBatch> parts;
  for (uint32_t n = 0; n < 4; ++n) parts.push_back(texts({some(9 + n, n)}));
  for (TrainBatch& part : parts) part.counted = 16;  // the same divisor for halves and whole
  const auto all = gradients(*model, parts);
  for (TrainBatch& part : parts) part.counted = 32;
  const auto left = gradients(*model, std::span(parts).first(2)), right = gradients(*model, std::span(parts).last(2));
  for (const auto& [name, gradient] : all) {
    Numbers sum = left.at(name);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += right.at(name)[i];
    EXPECT_TRUE(sum == gradient) << name;
  }
}

// Gradients are added as soon as backward has completed them: with an embedding that is read at both ends of a pass, and with
// layers that are computed again, the bits are those of the tree.
TEST_P(Checks, MicroBatchesAreAddedInPairs) {
  for (const bool tied : {false, true}) {
    for (const bool recompute : {false, true}) {
      Json config = llama();
      config["tie_word_embeddings"] = tied;
      const auto model = fresh(config);
      constexpr uint32_t kParts = 8;
      std::vector<TrainBatch> parts;
      for (uint32_t n = 0; n < kParts; ++n) {
        parts.push_back(texts({some(5 + n, n)}));
        parts.back().counted = 16;
      }
      const auto all = gradients(*model, parts, {.recompute = recompute});
      std::vector<std::map<std::string, Numbers>> sums;
      for (TrainBatch& part : parts) {
        part.counted = 16 * kParts;
        sums.push_back(gradients(*model, {&part, 1}, {.recompute = recompute}));
      }
      for (size_t distance = 1; distance < kParts; distance *= 2) {
        for (size_t n = 0; n < kParts; n += 2 * distance) {
          for (auto& [name, sum] : sums[n]) {
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += sums[n + distance].at(name)[i];
          }
        }
      }
      for (const auto& [name, gradient] : all) {
        EXPECT_TRUE(sums[0].at(name) == gradient) << name << ", tied " << tied << ", recompute " << recompute;
      }
    }
  }
}

TEST_P(Checks, ComputingLayersAgainChangesNoBit) {
  Json config = llama();
  config["attention_dropout"] = 0.2;
  const auto model = fresh(config);
  const TrainBatch batch = texts({some(20, 1), some(30, 2)});
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    const auto plain = gradients(*model, {&batch, 1}, {.precision = precision, .seed = 3, .step = 9});
    const auto again =
        gradients(*model, {&batch, 1}, {.precision = precision, .seed = 3, .step = 9, .recompute = true});
    EXPECT_TRUE(plain == again);
    EXPECT_FALSE(plain == gradients(*model, {&batch, 1}, {.precision = precision, .seed = 4, .step = 9})) << "dropout";
  }
}

TEST_P(Checks, DroppingDoesNotDependOnHowRowsAreDivided) {
  Json config = llama();
  config["attention_dropout"] = 0.3;
  const auto model = fresh(config);
  const std::vector<int32_t> a = some(20, 1), b = some(20, 2);
  const TrainBatch whole = texts({a, b});
  std::vector<TrainBatch> parts{texts({a}), texts({b})};
  parts[1].first_row = 19;
  const auto together = gradients(*model, {&whole, 1}, {.seed = 5}), apart = gradients(*model, parts, {.seed = 5});
  for (const auto& [name, gradient] : together) EXPECT_LT(squared_distance(apart.at(name), gradient), 1e-11) << name;
}

// Of one row, the gradient of a weight has a row of zeros for each output that was dropped.
TEST_P(Checks, WhatASublayerAddsIsDroppedByNumbersOfItsOwn) {
  const TrainBatch batch = texts({some(2, 1)});
  for (const double p : {0.0, 0.5}) {
    const auto model = fresh({{"model_type", "gpt2"},
                              {"vocab_size", 40},
                              {"n_embd", 32},
                              {"n_layer", 2},
                              {"n_head", 4},
                              {"n_positions", 64},
                              {"attn_pdrop", 0},
                              {"embd_pdrop", 0},
                              {"resid_pdrop", p}});
    const auto all = gradients(*model, {&batch, 1}, {.seed = 3});
    std::set<std::string> kept;
    for (const char* name : {"0.attn.o", "0.mlp.down", "1.attn.o", "1.mlp.down"}) {
      const Numbers& gradient = all.at("layers." + std::string(name));
      constexpr int64_t kOutputs = 32;
      const int64_t inputs = std::ssize(gradient) / kOutputs;
      std::string outputs;
      for (auto row = gradient.begin(); row != gradient.end(); row += inputs) {
        outputs += std::all_of(row, row + inputs, [](float x) { return x == 0; }) ? '0' : '1';
      }
      const auto dropped = std::count(outputs.begin(), outputs.end(), '0');
      EXPECT_TRUE(p == 0 ? dropped == 0 : dropped > 5 && dropped < 27) << name << " " << outputs;
      kept.insert(outputs);
    }
    EXPECT_EQ(kept.size(), p == 0 ? 1U : 4U);
  }
}

TEST_P(Checks, NeitherPackingNorTheFutureLeaks) {
  const auto model = fresh(llama());
  std::vector<int32_t> a = some(15, 1), b = some(15, 2);
  const Numbers before = losses(*model, texts({a, b}));
  b[3] = (b[3] + 1) % 40;
  const Numbers after = losses(*model, texts({a, b}));
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 14, after.begin())) << "another text changed this one's loss";
  EXPECT_NE(before[17], after[17]);
  a[10] = (a[10] + 1) % 40;
  const Numbers later = losses(*model, texts({a, b}));
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 9, later.begin())) << "a later token changed an earlier loss";
  EXPECT_TRUE(std::equal(after.begin() + 14, after.end(), later.begin() + 14));
}

TEST_P(Checks, TiedEmbeddingsGetTheSumOfBothGradients) {
  Json tied = llama();
  tied["tie_word_embeddings"] = true;
  const auto one = fresh(tied), two = fresh(llama());
  for (auto& [name, weight] : two->weights()) {
    test::set_numbers(weight, host_floats(one->weights().at(name == "head" ? "embed" : name).master()));
  }
  const TrainBatch batch = texts({some(20, 1)});
  auto shared = gradients(*one, {&batch, 1}), apart = gradients(*two, {&batch, 1});
  Numbers sum = apart.at("embed");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += apart.at("head")[i];
  EXPECT_LT(squared_distance(shared.at("embed"), sum), 1e-12);
}

TEST_P(Checks, ANaNIsRefusedAndChangesNothing) {
  const auto model = fresh(llama());
  Optimizer optimizer(model->spec(), model->weights(), {});
  const TrainBatch batch = texts({some(9, 1)});
  const Param& damaged = model->weights().at("layers.0.attn.q");
  Numbers numbers = host_floats(damaged.master());
  numbers[3] = NAN;
  test::set_numbers(damaged, numbers);
  const Numbers before = host_floats(model->weights().at("head").master());
  expect_error([&] { step(*model, optimizer, {&batch, 1}, {.lr = 1e-3, .clip = 1}); }, {"linear", "NaN or infinite"});
  EXPECT_TRUE(host_floats(model->weights().at("head").master()) == before);
  EXPECT_EQ(optimizer.steps(), 0);
}

INSTANTIATE_TEST_SUITE_P(OnDevices, Checks, testing::ValuesIn(test::fastest_tables()),
                         [](const auto& table) { return std::string(table.param->name); });

TEST(Schedule, IsItsFormula) {
  const Schedule cosine{.kind = Schedule::Kind::cosine, .peak = 1e-3, .last = 1e-4, .steps = 2000, .warmup = 100};
  EXPECT_DOUBLE_EQ(cosine.at(0), 1e-5);
  EXPECT_DOUBLE_EQ(cosine.at(99), 1e-3);
  EXPECT_DOUBLE_EQ(cosine.at(1050), (1e-3 + 1e-4) / 2);
  EXPECT_NEAR(cosine.at(1999), 1e-4, 1e-9);
  const Schedule root{.kind = Schedule::Kind::inverse_sqrt, .peak = 8e-4, .steps = 100000, .warmup = 4000};
  EXPECT_DOUBLE_EQ(root.at(15999), 4e-4);  // four times the warm-up: half of the peak
  const Schedule stable{
      .kind = Schedule::Kind::stable_decay, .peak = 1, .last = 0.2, .steps = 100, .warmup = 10, .decay = 20};
  EXPECT_DOUBLE_EQ(stable.at(79), 1);
  EXPECT_DOUBLE_EQ(stable.at(90), 0.6);
  EXPECT_DOUBLE_EQ((Schedule{.kind = Schedule::Kind::constant, .peak = 0.5, .steps = 5}).at(4), 0.5);
  expect_error([] { Schedule{.steps = 10, .warmup = 11}.validate(); }, {"10 steps", "11"});
  expect_error([] { Schedule{.peak = NAN, .steps = 10}.validate(); }, {"nan"});
}

}  // namespace
}  // namespace qkv
