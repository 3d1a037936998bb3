// Two layers of attention learn to copy what followed the last time, in a jump; one layer does not.
#include <algorithm>

#include "inspect/heads/head_roles.h"
#include "labs/labs.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"

namespace qkv::labs {
namespace {

struct Learnt {
  SeedNumbers::Curve score, loss;  // over steps
  double window = 1;               // share of the training in which the score rises from 10 % to 90 % of its way
};

double best_score(const LabContext& lab, const Model& model, uint64_t seed) {
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

Learnt learn(const LabContext& lab, int64_t layers, uint64_t seed) {
  const RepeatedTokens task;
  const auto model = fresh_model(
      config_of({.vocabulary = task.vocabulary, .width = 64, .layers = layers, .heads = 4, .init = 0.05}), seed);
  const std::string named = std::to_string(layers) + (layers == 1 ? " layer" : " layers");
  Learnt learnt{.score = {"step", "best induction score", named}, .loss = {"step", "loss of repeated tokens", named}};
  const TrainBatch held = task.texts(seed, -1, 32);
  const int64_t steps = lab.sized(1000);
  teach(lab, *model,
        {.what = named,
         .steps = steps,
         .lr = 2e-2,
         .batch = [&](int64_t step) { return task.texts(seed, step, 24); },
         .every = std::max<int64_t>(1, steps / 40),
         .look =
             [&](int64_t done) {
               const auto x = static_cast<double>(done);
               learnt.score.points.push_back({x, best_score(lab, *model, seed)});
               learnt.loss.points.push_back({x, mean_loss(lab.engine, *model, {&held, 1})});
             }});
  learnt.window = jump_window(learnt.score.points);
  return learnt;
}

SeedNumbers measure(const LabContext& lab, uint64_t seed) {
  const Learnt two = learn(lab, 2, seed), one = learn(lab, 1, seed);
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
          "A model of two layers learns in a sudden jump to continue what it has seen before in the text; a model of\n"
          "one layer does not learn it.",
      .claim_zh = "两层模型会突然学会接着上文重复过的内容往下写（归纳头）；一层模型学不会。",
      .how =
          "Blocks of 6 to 20 random tokens, said again and again in texts of 64: 1000 steps of 24 texts, width 64, 4 "
          "heads.\n"
          "Score: how much the best head looks at what followed the last copy, on fresh repeated tokens. The jump's\n"
          "width is the share of the training in which it goes from 10 % to 90 % of its rise. Not knowing is 4.16 "
          "nats.",
      .seeds = 3,
      .rules = {{"best induction score, 2 layers", LabRule::Side::above, 0.4, "the head's main business"},
                {"best induction score, 1 layer", LabRule::Side::below, 0.2, "no head does it"},
                {"loss of repeated tokens, 2 layers", LabRule::Side::below, 1, "nats; it can copy"},
                {"loss of repeated tokens, 1 layer", LabRule::Side::above, 2, "nats; it cannot"},
                {"share of the training the jump takes", LabRule::Side::below, 0.33, "sudden: a third of it at most"}},
      .measure = measure};
  return lab;
}

}  // namespace qkv::labs
