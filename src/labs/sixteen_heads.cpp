// How many heads can be pruned before the loss rises: by importance, and at random.
#include <algorithm>

#include "inspect/cut/importance.h"
#include "labs/labs.h"
#include "labs/small_model.h"
#include "labs/world_texts.h"

namespace qkv::labs {
namespace {

constexpr int64_t kPruneLength = 64;
constexpr double kPruneTolerance = 0.01;  // relative rise of the loss

// The relative rise of the loss over the share of heads pruned.
std::vector<LabPoint> rise(const PruningCurve& curve, double loss) {
  std::vector<LabPoint> points;
  for (const CurvePoint& p : curve.points) points.push_back({1 - p.kept, p.delta.mean / loss});
  return points;
}

double share_that_can_go(std::span<const LabPoint> points) {
  double share = 0;
  for (const LabPoint& p : points) {
    if (p.y > kPruneTolerance) break;
    share = p.x;
  }
  return share;
}

double rise_at_half(std::span<const LabPoint> points) {
  const auto past = std::find_if(points.begin(), points.end(), [](const LabPoint& p) { return p.x > 0.45; });
  return past->y;
}

SeedNumbers measure_sixteen_heads(const LabContext& lab, uint64_t seed) {
  constexpr uint64_t kDraws = 3;
  const WorldTexts& world = WorldTexts::of(lab.sized(4000, 100));
  const auto model =
      fresh_model(lab, config_of({.vocabulary = world.vocabulary(), .width = 128, .layers = 3, .heads = 16}), seed);
  train_model(lab, *model,
              {.label = "learning the world", .steps = lab.sized(400), .lr = 4e-3, .batch = [&](int64_t step) {
                 return world.batch(seed, step, 16, 96);
               }});

  // Heads are ordered on some texts and cut on others, so that noise in the choice does not count.
  const int64_t half = lab.sized(48, 6);
  const std::vector<TokenText> texts = world.held_out(2 * half, kPruneLength);
  const auto chosen_on = std::span(texts).first(static_cast<size_t>(half));
  const auto cut_on = std::span(texts).subspan(static_cast<size_t>(half));
  Reader reader(*model, lab.engine, {});
  const auto progress = [&](size_t) {
    lab.check("cutting heads");
    return true;
  };
  CurveOptions options{.ablation = Ablation::zero, .outputs = nullptr, .seed = seed, .finished = progress};
  options.known = pruning_curve(reader, chosen_on, Order::gradient, options).cut;
  const PruningCurve by_importance = pruning_curve(reader, cut_on, Order::ablation, options);
  const TextSum whole = [&] {
    TextSum sum;
    for (const TextSum& text : loss_sums(reader, cut_on)) sum += text;
    return sum;
  }();
  const double loss = whole.sum / static_cast<double>(whole.count);

  SeedNumbers out;
  SeedNumbers::Curve chosen{"share of heads cut", "rise of the loss", "by importance", rise(by_importance, loss)};
  SeedNumbers::Curve random{"share of heads cut", "rise of the loss", "by chance"};
  double random_share = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    options.known = random_order(model->spec(), 100 * seed + draw);
    const std::vector<LabPoint> points = rise(pruning_curve(reader, cut_on, Order::random, options), loss);
    random_share += share_that_can_go(points) / kDraws;
    if (random.points.empty()) {
      for (const LabPoint& p : points) random.points.push_back({p.x, 0});
    }
    for (size_t i = 0; i < points.size(); ++i) random.points[i].y += points[i].y / kDraws;
  }
  out.add_amount("loss, nats per token", loss);
  out.add_amount("heads", static_cast<double>(all_heads(model->spec()).size()));
  out.add_share("share that can go by importance", share_that_can_go(chosen.points));
  out.add_share("share that can go by chance", random_share);
  out.add("rise of the loss without half of them, by importance", rise_at_half(chosen.points));
  out.add("rise of the loss without half of them, by chance", rise_at_half(random.points));
  out.add("rise by chance less rise by importance", rise_at_half(random.points) - rise_at_half(chosen.points));
  out.curves = {chosen, random};
  return out;
}

}  // namespace

const Lab& sixteen_heads() {
  static const Lab lab{
      .name = "sixteen-heads",
      .claim = "Many heads can be pruned before the loss rises: at least a fifth, if the unimportant ones go first.",
      .claim_zh = "很多头可以剪掉而损失不变：先剪不重要的，至少五分之一可以去掉。",
      .how =
          "Three layers of 16 heads learn the built-in world, 400 steps. Heads are ordered by gradient importance,\n"
          "measured again at every tenth, on 48 texts, and cut (their output becomes 0) on 48 others, beside three\n"
          "random orders. The loss counts as risen when it is 1 % higher.",
      .seeds = 3,
      .rules = {{"share that can go by importance", LabRule::Side::above, 0.2, "what Michel et al. 2019 found in WMT"},
                {"rise by chance less rise by importance", LabRule::Side::above, 0, "better than a random order"}},
      .found =
          {.seen = {"Of {heads} heads {share that can go by importance%} could go, the least important first, before "
                    "the loss rose by 1 %; at random {share that can go by chance%}.",
                    "{heads} 个头里，先剪最不重要的，剪掉 {share that can go by importance%} 损失才升高 1%；"
                    "随机剪只能剪 {share that can go by chance%}。"},
           .mixed = {"Of {heads} heads only {share that can go by importance%} could go, the least important first, "
                     "before the loss rose by 1 %; at random {share that can go by chance%}. Without half of them it "
                     "rose by {rise of the loss without half of them, by importance%}, at random by {rise of the "
                     "loss without half of them, by chance%}.",
                     "{heads} 个头里，先剪最不重要的，只能剪掉 {share that can go by importance%}，损失就升高了 "
                     "1%；随机剪是 "
                     "{share that can go by chance%}。剪掉一半，损失升高 {rise of the loss without half of them, by "
                     "importance%}，随机剪升高 {rise of the loss without half of them, by chance%}。"},
           .not_seen = {"No fifth of the {heads} heads could go, and the order by importance was no better than a "
                        "random one.",
                        "{heads} 个头连五分之一也剪不掉，按重要性剪也不比随机剪好。"}},
      .measure = measure_sixteen_heads};
  return lab;
}

}  // namespace qkv::labs
