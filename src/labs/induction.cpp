// Induction heads: two layers of attention learn to copy what followed the previous occurrence, suddenly; one does not.
#include <algorithm>

#include "inspect/heads/head_roles.h"
#include "labs/labs.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"

namespace qkv::labs {
namespace {

struct InductionCurves {
  SeedNumbers::Curve score, loss;  // over steps
  double window = 1;               // share of the training in which the score goes from 10 % to 90 % of its rise
};

double best_induction(const LabContext& lab, const Model& model, uint64_t seed) {
  Reader reader(model, lab.engine, {});
  double best = 0;
  for (const RepeatScore& head : repeat_scores(reader, {.length = 12, .repeats = 2, .texts = 8, .seed = seed})) {
    best = std::max(best, head.induction.mean);
  }
  return best;
}

double jump_window(std::span<const LabPoint> points) {
  const double last = points.back().y, first = points.front().y;
  double begin = 0;
  for (const LabPoint& p : points) {
    if (p.y <= first + 0.1 * (last - first)) begin = p.x;
    if (p.y >= first + 0.9 * (last - first)) return (p.x - begin) / points.back().x;
  }
  return 1;
}

InductionCurves train_induction(const LabContext& lab, int64_t layers, uint64_t seed) {
  const RepeatedTokens task;
  const auto model = fresh_model(
      lab, config_of({.vocabulary = task.vocabulary, .width = 64, .layers = layers, .heads = 4, .init = 0.05}), seed);
  const std::string named = std::to_string(layers) + (layers == 1 ? " layer" : " layers");
  InductionCurves curves{.score = {"step", "best induction score", named},
                         .loss = {"step", "loss of repeated tokens", named}};
  const TrainBatch held = task.texts(seed, -1, 32);
  const int64_t steps = lab.sized(1000);
  train_model(lab, *model,
              {.label = named,
               .steps = steps,
               .lr = 2e-2,
               .batch = [&](int64_t step) { return task.texts(seed, step, 24); },
               .eval_every = std::max<int64_t>(1, steps / 40),
               .on_eval =
                   [&](int64_t done) {
                     const auto x = static_cast<double>(done);
                     curves.score.points.push_back({x, best_induction(lab, *model, seed)});
                     curves.loss.points.push_back({x, mean_loss(lab.engine, *model, {&held, 1})});
                   }});
  curves.window = jump_window(curves.score.points);
  return curves;
}

SeedNumbers measure_induction(const LabContext& lab, uint64_t seed) {
  const InductionCurves two = train_induction(lab, 2, seed), one = train_induction(lab, 1, seed);
  SeedNumbers out;
  out.add("best induction score, 2 layers", two.score.points.back().y);
  out.add("best induction score, 1 layer", one.score.points.back().y);
  out.add("loss of repeated tokens, 2 layers", two.loss.points.back().y);
  out.add("loss of repeated tokens, 1 layer", one.loss.points.back().y);
  out.add("share of the training the jump takes", two.window);
  out.curves = {two.score, one.score, two.loss, one.loss};
  return out;
}

}  // namespace

const Lab& induction() {
  static const Lab lab{
      .name = "induction",
      .claim =
          "A model of two layers suddenly learns to continue a passage it has seen before in the text (an induction\n"
          "head); a model of one layer does not learn it.",
      .claim_zh = "两层模型会突然学会接着上文重复过的内容往下写（归纳头）；一层模型学不会。",
      .how =
          "Blocks of 6 to 20 random tokens, repeated in texts of 64: 1000 steps of 24 texts, width 64, 4 heads.\n"
          "Score: attention of the best head on the token after the previous copy, on fresh repeated tokens. The\n"
          "jump's width is the share of the training in which the score goes from 10 % to 90 % of its rise. Guessing\n"
          "at random costs 4.16 nats.",
      .seeds = 3,
      .rules = {{"best induction score, 2 layers", LabRule::Side::above, 0.4, "most of the head's attention"},
                {"best induction score, 1 layer", LabRule::Side::below, 0.2, "no head does it"},
                {"loss of repeated tokens, 2 layers", LabRule::Side::below, 1, "nats; it can copy"},
                {"loss of repeated tokens, 1 layer", LabRule::Side::above, 2, "nats; it cannot"},
                {"share of the training the jump takes", LabRule::Side::below, 0.33, "sudden: a third of it at most"}},
      .measure = measure_induction};
  return lab;
}

}  // namespace qkv::labs
