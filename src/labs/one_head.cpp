// One head against eight, with the same width, the same number of weights and the same steps.
#include "labs/labs.h"
#include "labs/small_model.h"
#include "labs/world_texts.h"
#include "world/draw.h"

namespace qkv::labs {
namespace {

constexpr int64_t kOneHeadWidth = 64;

// A task that needs two keys at once: after "a5 d2 b9 c1 ..." the answer to "? b d" is the sum of their values. One
// softmax must split its attention between two positions; two heads need not. Answers are targets only, never inputs.
constexpr int32_t kPairKeys = 8, kPairValues = 8, kAsk = kPairKeys + kPairValues, kSums = kAsk + 1;
constexpr int32_t kPairsVocabulary = kSums + 2 * kPairValues;
constexpr int kQuestions = 6;  // per text

TrainBatch pairs_batch(uint64_t seed, int64_t step, int64_t texts) {
  world::Draw draw(seed, static_cast<uint64_t>(step), 8);
  TrainBatch batch;
  for (int64_t i = 0; i < texts; ++i) {
    std::array<int32_t, kPairKeys> order, value;
    for (int32_t k = 0; k < kPairKeys; ++k) order[static_cast<size_t>(k)] = k;
    for (size_t k = order.size() - 1; k > 0; --k) std::swap(order[k], order[draw.below(static_cast<uint32_t>(k + 1))]);
    std::vector<int32_t> ids;
    for (const int32_t key : order) {
      value[static_cast<size_t>(key)] = static_cast<int32_t>(draw.below(kPairValues));
      ids.push_back(key);
      ids.push_back(kPairKeys + value[static_cast<size_t>(key)]);
    }
    std::vector<int32_t> targets(ids.size(), TrainBatch::kIgnored);
    for (int question = 0; question < kQuestions; ++question) {
      const size_t a = draw.below(kPairKeys), b = draw.below(kPairKeys);
      ids.insert(ids.end(), {kAsk, static_cast<int32_t>(a), static_cast<int32_t>(b)});
      targets.insert(targets.end(), {TrainBatch::kIgnored, TrainBatch::kIgnored, kSums + value[a] + value[b]});
    }
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    batch.lengths.push_back(static_cast<int32_t>(ids.size()));
    batch.counted += kQuestions;
  }
  return batch;
}

double world_loss(const LabContext& lab, const WorldTexts& world, int64_t heads, uint64_t seed) {
  const auto model = fresh_model(
      lab, config_of({.vocabulary = world.vocabulary(), .width = kOneHeadWidth, .layers = 2, .heads = heads}), seed);
  train_model(lab, *model,
              {.label = "the world, heads: " + std::to_string(heads),
               .steps = lab.sized(500),
               .lr = 1e-2,
               .batch = [&](int64_t step) { return world.batch(seed, step, 16, 96); }});
  TrainBatch held;
  for (const TokenText& text : world.held_out(lab.sized(150, 10), 96)) add_text(held, text.ids);
  return mean_loss(lab.engine, *model, {&held, 1});
}

double pairs_loss(const LabContext& lab, int64_t heads, uint64_t seed) {
  const auto model = fresh_model(
      lab,
      config_of({.vocabulary = kPairsVocabulary, .width = kOneHeadWidth, .layers = 2, .heads = heads, .init = 0.05}),
      seed);
  train_model(lab, *model,
              {.label = "two keys at once, heads: " + std::to_string(heads),
               .steps = lab.sized(800),
               .lr = 2e-2,
               .batch = [&](int64_t step) { return pairs_batch(seed, step, 40); }});
  const TrainBatch held = pairs_batch(seed, -1, lab.sized(400, 20));
  return mean_loss(lab.engine, *model, {&held, 1});
}

SeedNumbers measure_one_head(const LabContext& lab, uint64_t seed) {
  const WorldTexts& world = WorldTexts::of(lab.sized(4000, 100));
  const double world1 = world_loss(lab, world, 1, seed), world8 = world_loss(lab, world, 8, seed);
  const double pairs1 = pairs_loss(lab, 1, seed), pairs8 = pairs_loss(lab, 8, seed);
  SeedNumbers out;
  out.add("loss on the world, 1 head", world1);
  out.add("loss on the world, 8 heads", world8);
  out.add("world: 1 head less 8 heads", world1 - world8);
  out.add("loss on two keys at once, 1 head", pairs1);
  out.add("loss on two keys at once, 8 heads", pairs8);
  out.add("two keys at once: 1 head less 8 heads", pairs1 - pairs8);
  return out;
}

}  // namespace

const Lab& one_head() {
  static const Lab lab{
      .name = "one-head",
      .claim = "Eight narrow heads learn more than one wide head of the same total width in the same steps.",
      .claim_zh = "总宽度相同、步数相同，八个窄头比一个宽头学得更好。",
      .how =
          "Two layers of width 64 with 1 or 8 heads and the same number of weights: 500 steps on the built-in world,\n"
          "loss on held-out stories; and 800 steps on a task that needs two keys at once, the sum of their values.",
      .seeds = 3,
      .rules = {{"world: 1 head less 8 heads", LabRule::Side::above, 0, "nats per token: 8 heads are better"},
                {"two keys at once: 1 head less 8 heads", LabRule::Side::above, 0, "nats: 8 heads are better"},
                {"loss on two keys at once, 8 heads", LabRule::Side::below, 2, "nats; guessing at random costs 2.3"}},
      .measure = measure_one_head};
  return lab;
}

}  // namespace qkv::labs
