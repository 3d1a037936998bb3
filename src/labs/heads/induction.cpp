// Induction heads: two layers of attention learn to copy what followed the previous occurrence, suddenly; one does not.
#include <algorithm>

#include "inspect/heads/head_roles.h"
#include "labs/heads/jump.h"
#include "labs/labs.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"

namespace qkv::labs {
namespace {

struct InductionCurves {
  SeedNumbers::Curve score, loss;  // over steps
  double jump = 1;                 // share of the training, in log steps, in which the score rises
};

double best_induction(const LabContext& lab, const Model& model, uint64_t seed) {
  Reader reader(model, lab.engine, {});
  double best = 0;
  for (const RepeatScore& head : repeat_scores(reader, {.length = 12, .repeats = 2, .texts = 8, .seed = seed})) {
    best = std::max(best, head.induction.mean);
  }
  return best;
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
  curves.jump = jump_in_log_steps(curves.score.points);
  return curves;
}

SeedNumbers measure_induction(const LabContext& lab, uint64_t seed) {
  const InductionCurves two = train_induction(lab, 2, seed), one = train_induction(lab, 1, seed);
  SeedNumbers out;
  out.add_share("best induction score, 2 layers", two.score.points.back().y);
  out.add_share("best induction score, 1 layer", one.score.points.back().y);
  out.add_amount("loss of repeated tokens, 2 layers", two.loss.points.back().y);
  out.add_amount("loss of repeated tokens, 1 layer", one.loss.points.back().y);
  out.add_share("share of the training the jump takes, in log steps", two.jump);
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
          "jump is what log(steps) grows by while the score goes from 10 % to 90 % of its rise, as a share of what it\n"
          "grows by in the whole training; a score that rose evenly from the first step to the last would take 0.32.\n"
          "Guessing at random costs 4.16 nats.",
      .seeds = 6,
      .rules = {{"best induction score, 2 layers", LabRule::Side::above, 0.4, "most of the head's attention"},
                {"best induction score, 1 layer", LabRule::Side::below, 0.2, "no head does it"},
                {"loss of repeated tokens, 2 layers", LabRule::Side::below, 1, "nats; it can copy"},
                {"loss of repeated tokens, 1 layer", LabRule::Side::above, 2, "nats; it cannot"},
                {"share of the training the jump takes, in log steps", LabRule::Side::below, 0.2,
                 "sudden: an even rise takes 0.32"}},
      .found =
          {.seen = {"With two layers a head that copies appears within {share of the training the jump takes, in log "
                    "steps%} of the training (in log steps) and repeats then cost {loss of repeated tokens, 2 layers} "
                    "nats; with one layer none appears and they cost {loss of repeated tokens, 1 layer}.",
                    "两层模型在训练的 {share of the training the jump takes, in log "
                    "steps%}（按步数的对数）之内冒出一个会抄写的头，之后重复的内容只要 "
                    "{loss of repeated tokens, 2 layers} 纳特；一层模型没有这样的头，要 {loss of repeated tokens, 1 "
                    "layer} 纳特。"},
           .mixed =
               {"Repeats cost {loss of repeated tokens, 2 layers} nats with two layers and {loss of repeated "
                "tokens, 1 layer} with one; the best copying head scores {best induction score, 2 layers} and "
                "{best induction score, 1 layer}, and its rise takes {share of the training the jump takes, in "
                "log steps%} of the training in log steps.",
                "重复的内容，两层模型要 {loss of repeated tokens, 2 layers} 纳特，一层模型要 {loss of repeated tokens, "
                "1 "
                "layer} 纳特；最好的抄写头得分 {best induction score, 2 layers} 和 {best induction score, 1 "
                "layer}，它的上升占训练的 {share of the training the jump takes, in log steps%}（按步数的对数）。"},
           .not_seen = {"Two layers did not learn to copy, or one layer did too.",
                        "两层模型没有学会抄写，或者一层模型也学会了。"}},
      .measure = measure_induction};
  return lab;
}

}  // namespace qkv::labs
