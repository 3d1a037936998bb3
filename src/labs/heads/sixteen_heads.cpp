// How many heads can be pruned before the loss rises: by importance, and at random.
#include <algorithm>

#include "base/path.h"
#include "inspect/cut/importance.h"
#include "labs/heads/world_texts.h"
#include "labs/labs.h"
#include "labs/small_model.h"
#include "open/builtin_models.h"
#include "open/world_texts.h"

namespace qkv::labs {
namespace {

constexpr int64_t kPruneLength = 64;
constexpr int64_t kBuiltinTexts = 16, kBuiltinLength = 64;
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

struct PruningTexts {
  std::span<const TokenText> order,
      judge;  // heads are ordered on some and cut on others: noise in the choice does not count
};

double mean_of(std::span<const TextSum> texts) {
  TextSum whole;
  for (const TextSum& text : texts) whole += text;
  return whole.sum / static_cast<double>(whole.count);
}

// Adds what came of pruning a model, all names after `of`.
void add_pruning(SeedNumbers& out, const LabContext& lab, const Model& model, const PruningTexts& texts,
                 const std::string& of, uint64_t seed) {
  const auto draws = static_cast<uint64_t>(lab.sized(3, 1));
  Reader reader(model, lab.engine, {});
  const auto progress = [&](size_t) {
    lab.check("cutting heads");
    return true;
  };
  CurveOptions options{.ablation = Ablation::zero, .outputs = nullptr, .seed = seed, .finished = progress};
  options.known = pruning_curve(reader, texts.order, Order::gradient, options).cut;
  const PruningCurve by_importance = pruning_curve(reader, texts.judge, Order::ablation, options);
  const double loss = mean_of(loss_sums(reader, texts.judge)),
               heads = static_cast<double>(all_heads(model.spec()).size());
  double alone = 0;
  for (const HeadImportance& head : ablation_importance(reader, texts.judge, Ablation::zero, nullptr, progress)) {
    alone += head.raw.mean <= kPruneTolerance * loss ? 1 / heads : 0;
  }
  SeedNumbers::Curve chosen{"share of heads cut", of + "rise of the loss", "by importance", rise(by_importance, loss)};
  SeedNumbers::Curve random{"share of heads cut", of + "rise of the loss", "by chance"};
  double random_share = 0;
  for (uint64_t draw = 0; draw < draws; ++draw) {
    options.known = random_order(model.spec(), 100 * seed + draw);
    const std::vector<LabPoint> points = rise(pruning_curve(reader, texts.judge, Order::random, options), loss);
    random_share += share_that_can_go(points) / static_cast<double>(draws);
    if (random.points.empty()) {
      for (const LabPoint& p : points) random.points.push_back({p.x, 0});
    }
    for (size_t i = 0; i < points.size(); ++i) random.points[i].y += points[i].y / static_cast<double>(draws);
  }
  out.add_amount(of + "loss, nats per token", loss);
  out.add_amount(of + "heads", heads);
  out.add_share(of + "share that can go one at a time", std::min(alone, 1.0));
  out.add_share(of + "share that can go by importance", share_that_can_go(chosen.points));
  out.add_share(of + "share that can go by chance", random_share);
  out.add(of + "rise of the loss without half of them, by importance", rise_at_half(chosen.points));
  out.add(of + "rise of the loss without half of them, by chance", rise_at_half(random.points));
  out.add(of + "rise by chance less rise by importance", rise_at_half(random.points) - rise_at_half(chosen.points));
  out.curves.push_back(chosen);
  out.curves.push_back(random);
}

// Other stories for every seed; what the model itself was trained on is not among them.
std::vector<TokenText> builtin_texts(const OpenModel& model, uint64_t seed, int64_t count) {
  std::vector<TokenText> texts;
  const std::vector<std::string> all = model.spec().has_source() ? std::vector<std::string>{"world:pairs"}
                                                                 : std::vector<std::string>{"world", "world:zh"};
  for (const std::string& data : all) {
    const int64_t each = count / std::ssize(all), last = static_cast<int64_t>((seed - 1) % 64 + 1) * each;
    CollectedTexts collected(model.spec(), {.tokens = last * kBuiltinLength, .length = kBuiltinLength});
    add_world(model, data, collected);  // no text is longer, so there are as many at least
    std::vector<TokenText> more = collected.take();
    texts.insert(texts.end(), more.begin() + (last - each), more.begin() + last);
  }
  return texts;
}

// A built-in model, or what is missing.
void add_builtin(SeedNumbers& out, const LabContext& lab, const std::string& name, uint64_t seed) {
  const auto all = builtin_models();
  const auto model_named = std::find_if(all.begin(), all.end(), [&](const BuiltinModel& m) { return m.name == name; });
  if (!is_folder(model_named->folder())) {
    out.skipped.push_back({name,
                           {"the built-in model " + name + " is not here; qkv models says how to make it.",
                            "没有内置模型 " + name + "；怎样制作，见 qkv models。"}});
    return;
  }
  const std::string path = find_model("builtin:" + name);                              // an Error if it is damaged
  const OpenModel opened(path, {.threads = 1, .device = kernels::DeviceChoice::cpu});  // encodes the texts
  const auto model = opened.checkpoint().model(lab.engine.device());
  const int64_t half = lab.sized(kBuiltinTexts, 2);
  const std::vector<TokenText> texts = builtin_texts(opened, seed, 2 * half);
  std::vector<TokenText> order, judge;  // in turn, so that both have both languages
  for (size_t i = 0; i < texts.size(); ++i) (i % 2 == 0 ? order : judge).push_back(texts[i]);
  add_pruning(out, lab, *model, {order, judge}, name + ": ", seed);
}

SeedNumbers measure_sixteen_heads(const LabContext& lab, uint64_t seed) {
  const WorldTexts& world = WorldTexts::of(lab.sized(4000, 100));
  const auto model =
      fresh_model(lab, config_of({.vocabulary = world.vocabulary(), .width = 128, .layers = 3, .heads = 16}), seed);
  train_model(lab, *model,
              {.label = "learning the world", .steps = lab.sized(400), .lr = 4e-3, .batch = [&](int64_t step) {
                 return world.batch(seed, step, 16, 96);
               }});
  const int64_t half = lab.sized(48, 6);
  const std::vector<TokenText> texts = world.held_out(2 * half, kPruneLength);
  SeedNumbers out;
  add_pruning(out, lab, *model,
              {std::span(texts).first(static_cast<size_t>(half)), std::span(texts).subspan(static_cast<size_t>(half))},
              "", seed);
  add_builtin(out, lab, "world", seed);
  add_builtin(out, lab, "translator", seed);
  return out;
}

// The rules of one model.
void add_pruning_rules(std::vector<LabRule>& rules, const std::string& of, int part) {
  rules.push_back({of + "share that can go by importance", LabRule::Side::above, 0.2,
                   "what Michel et al. 2019 found in WMT", part});
  rules.push_back(
      {of + "rise by chance less rise by importance", LabRule::Side::above, 0, "better than a random order", part});
  rules.push_back({of + "share that can go one at a time", LabRule::Side::above, 0.5,
                   "most of them, as Michel et al. 2019 found", part});
}
std::vector<LabRule> all_pruning_rules() {
  std::vector<LabRule> rules;
  add_pruning_rules(rules, "", 0);
  add_pruning_rules(rules, "world: ", 1);
  add_pruning_rules(rules, "translator: ", 2);
  return rules;
}

LabSentence pruning_sentence(const std::string& of) {
  return {"One at a time {" + of + "share that can go one at a time%} of its {" + of +
              "heads} heads can go without the loss rising by 1 %; together {" + of +
              "share that can go by importance%}, the least important first, and {" + of +
              "share that can go by chance%} at random. Without half of them the loss rises by {" + of +
              "rise of the loss without half of them, by importance%}, at random by {" + of +
              "rise of the loss without half of them, by chance%}.",
          "它的 {" + of + "heads} 个头，单独去掉一个而损失升高不到 1% 的占 {" + of +
              "share that can go one at a time%}；一起去掉，先去最不重要的，可以去掉 {" + of +
              "share that can go by importance%}，随机去掉是 {" + of +
              "share that can go by chance%}。去掉一半，损失升高 {" + of +
              "rise of the loss without half of them, by importance%}，随机去掉则升高 {" + of +
              "rise of the loss without half of them, by chance%}。"};
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
          "random orders. The loss counts as risen when it is 1 % higher. Beside it, each head is cut alone. The same\n"
          "is done with the built-in models world and translator, on 16 and 16 texts that no recipe trains on, other\n"
          "ones for every seed; one that is not here is skipped.",
      .seeds = 3,
      .rules = all_pruning_rules(),
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
      .measure = measure_sixteen_heads,
      .parts = {{"from zero",
                 "从零训练",
                 {"In a small model that was trained for this.", "专门训练的小模型。"},
                 pruning_sentence("")},
                {"world",
                 "world",
                 {"In the built-in model world (decoder-only).", "内置模型 world（只有解码器）。"},
                 pruning_sentence("world: "),
                 "world"},
                {"translator",
                 "translator",
                 {"In the built-in model translator: encoder, decoder and cross-attention.",
                  "内置模型 translator：编码器、解码器和交叉注意力。"},
                 pruning_sentence("translator: "),
                 "translator"}}};
  return lab;
}

}  // namespace qkv::labs
