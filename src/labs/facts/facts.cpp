// Where a capital is stored: in the feed-forwards, or in attention. By cutting and by patching.
#include <cmath>

#include "inspect/patch/patch.h"
#include "labs/facts/cut_branches.h"
#include "labs/facts/fact_world.h"
#include "labs/labs.h"
#include "model/families/family.h"

namespace qkv::labs {
namespace {

constexpr int64_t kFactLayers = 3;

std::unique_ptr<Model> learn_facts(const LabContext& lab, const FactWorld& world, uint64_t seed, bool feed_forwards) {
  ModelSpec spec = read_spec(Config(
      config_of({.vocabulary = FactWorld::vocabulary(), .width = 64, .layers = kFactLayers, .heads = 4, .init = 0.05}),
      "the lab's model"));
  if (!feed_forwards) {
    for (LayerSpec& layer : spec.decoder.layers) layer.feed.width = 0;
  }
  auto model = fresh_model(lab, std::move(spec), seed);
  train_model(lab, *model,
              {.label = feed_forwards ? "learning facts" : "learning facts without feed-forwards",
               .steps = lab.sized(500),
               .lr = 1e-2,
               .batch = [&](int64_t step) { return world.texts(seed, step, 24); }});
  return model;
}

struct FactExam {
  double right = 0, without_feed_forwards = 0;
};
FactExam examine(const LabContext& lab, const Model& model, std::span<const FactWorld::Question> questions) {
  std::vector<TokenText> texts;
  std::vector<int32_t> groups;
  for (const FactWorld::Question& q : questions) {
    texts.push_back(q.text);
    groups.push_back(q.group);
  }
  Reader reader(model, lab.engine, {});
  const auto right = [&](const std::vector<int32_t>& guesses) {
    double sum = 0;
    for (size_t i = 0; i < questions.size(); ++i) sum += guesses[i] == questions[i].answer ? 1 : 0;
    return sum / static_cast<double>(questions.size());
  };
  FactExam exam{.right = right(top_guesses(reader, {texts, groups}))};
  if (!model.spec().decoder.layers.front().feed.absent()) {
    exam.without_feed_forwards = right(top_guesses_without_feed_forwards(reader, {texts, groups}));
  }
  return exam;
}

Patch at_places(Site site, int32_t from, int32_t to) {
  Patch patch;
  for (int16_t layer = 0; layer < kFactLayers; ++layer) {
    for (int32_t at = from; at <= to; ++at)
      patch.push_back({.place = {Stack::decoder, layer}, .site = site, .position = at});
  }
  return patch;
}

struct FactPatches {
  double by_feed_forwards = 0;       // come back with what they write in the clean text
  double without_feed_forwards = 0;  // left of the clean answer with what they write in the corrupt text
  double by_unrelated = 0;
  std::vector<SeedNumbers::Curve> by_layer;
};

FactPatches patch_facts(const LabContext& lab, const Model& model, std::span<const FactWorld::Question> facts) {
  constexpr int32_t kCountry = FactWorld::kCountryAt, kLast = FactWorld::kLastAt, kFirst = FactWorld::kUnrelated;
  struct Line {
    const char* name;
    Site site;
    int32_t at;
  };
  constexpr std::array<Line, 4> kLines{{{"feed-forward, at the country", Site::mlp_out, kCountry},
                                        {"feed-forward, at the last word", Site::mlp_out, kLast},
                                        {"attention, at the country", Site::attn_out, kCountry},
                                        {"attention, at the last word", Site::attn_out, kLast}}};
  std::vector<Patch> patches{at_places(Site::mlp_out, kFirst, kLast)};
  Patch unrelated = at_places(Site::resid_pre, 0, kFirst - 1);
  patches.push_back(unrelated);
  for (const Line& line : kLines) {
    for (int16_t layer = 0; layer < kFactLayers; ++layer) {
      patches.push_back({{.place = {Stack::decoder, layer}, .site = line.site, .position = line.at}});
    }
  }
  std::vector<double> sums(patches.size());
  double left = 0;
  int64_t pairs = 0;
  Reader reader(model, lab.engine, {});
  const int64_t wanted = lab.sized(64, 4);
  for (size_t i = 0; i + 1 < facts.size() && pairs < wanted; ++i) {
    const FactWorld::Question &clean = facts[i], &corrupt = facts[i + 1];  // the next country, the same role
    if (clean.group != corrupt.group || clean.answer == corrupt.answer) continue;
    lab.check("patching");
    Patcher patcher(reader, clean.text, corrupt.text), back(reader, corrupt.text, clean.text);
    const PatchOutcome outcome = patcher.outcome(patches, clean.answer, corrupt.answer);
    // A share of nothing says nothing: after a few steps of training the two texts hardly differ.
    if (std::abs(outcome.clean - outcome.corrupt) < 1e-3) continue;
    for (size_t p = 0; p < patches.size(); ++p) sums[p] += outcome.restored(p);
    left += 1 - back.outcome({patches.data(), 1}, corrupt.answer, clean.answer).restored(0);
    ++pairs;
  }
  const double n = static_cast<double>(std::max<int64_t>(pairs, 1));
  FactPatches made{
      .by_feed_forwards = sums[0] / n, .without_feed_forwards = left / n, .by_unrelated = sums[1] / n, .by_layer = {}};
  size_t p = 2;
  for (const Line& line : kLines) {
    SeedNumbers::Curve curve{"layer", "brought back by patching", line.name};
    for (int64_t layer = 0; layer < kFactLayers; ++layer)
      curve.points.push_back({static_cast<double>(layer), sums[p++] / n});
    made.by_layer.push_back(std::move(curve));
  }
  return made;
}

SeedNumbers measure_facts(const LabContext& lab, uint64_t seed) {
  const FactWorld world(seed), shuffled(seed, true);
  const std::vector<FactWorld::Question> facts = world.facts(seed), flags = world.flags(seed, lab.sized(200, 20));
  const auto model = learn_facts(lab, world, seed, true), alone = learn_facts(lab, world, seed, false),
             nothing = learn_facts(lab, shuffled, seed, true);
  const FactExam known = examine(lab, *model, facts), read = examine(lab, *model, flags);
  const FactPatches patched = patch_facts(lab, *model, facts);
  SeedNumbers out;
  out.add_share("facts: right", known.right);
  out.add_share("facts: right with the feed-forwards cut", known.without_feed_forwards);
  out.add_share("read in the text: right", read.right);
  out.add_share("read in the text: right with the feed-forwards cut", read.without_feed_forwards);
  out.add("facts: brought back by the feed-forwards alone", patched.by_feed_forwards);
  out.add("facts: left with the feed-forwards of another country", patched.without_feed_forwards);
  out.add("control: brought back by unrelated words", patched.by_unrelated);
  out.add_share("control: facts drawn anew in every text: right", examine(lab, *nothing, facts).right);
  out.add_share("trained without feed-forwards: facts right", examine(lab, *alone, facts).right);
  out.curves = patched.by_layer;
  return out;
}

}  // namespace

const Lab& facts() {
  static const Lab lab{
      .name = "facts",
      .claim =
          "What a model knows by heart, such as a capital, is stored in its feed-forwards; attention brings things\n"
          "together and can read what stands in the text, without them.",
      .claim_zh = "模型背下来的知识（比如首都）存放在前馈层里；注意力只负责搬运，读出文中写着的内容不需要前馈层。",
      .how =
          "A world of 16 countries with 8 towns each (capital, port, ...) of 32, drawn once, and a flag whose colour "
          "is\n"
          "new in every text and said three times. Three layers of width 64 learn texts about both, 500 steps. "
          "Cutting:\n"
          "what every feed-forward writes becomes its mean over all countries (over all colours), at the same place "
          "of\n"
          "the same question. Patching: the corrupt text asks for the same role of another country, after another\n"
          "colour; the feed-forwards write what they wrote in the clean text, at the words of the question, and the\n"
          "other way round. Controls that must fail: patching all of the words that are not of the question, and a\n"
          "model of a world whose facts are drawn anew in every text. Beside it, without a rule: a model trained "
          "without\n"
          "feed-forwards. Guessing is right in one case of 32.",
      .seeds = 3,
      .rules = {{"facts: right", LabRule::Side::above, 0.9, "it knows them"},
                {"read in the text: right", LabRule::Side::above, 0.9, "it can read"},
                {"facts: right with the feed-forwards cut", LabRule::Side::below, 0.5, "most of it is gone"},
                {"read in the text: right with the feed-forwards cut", LabRule::Side::above, 0.5,
                 "attention reads without them"},
                {"facts: brought back by the feed-forwards alone", LabRule::Side::above, 0.5, "they carry the fact"},
                {"facts: left with the feed-forwards of another country", LabRule::Side::below, 0.5,
                 "attention alone does not"},
                {"control: brought back by unrelated words", LabRule::Side::below, 0.1, "they say nothing of it"},
                {"control: facts drawn anew in every text: right", LabRule::Side::below, 0.2,
                 "there is nothing to know"}},
      .found = {.seen = {"{facts: right%} of the facts are known; with the feed-forwards cut {facts: right with the "
                         "feed-forwards cut%}, while what stands in the text is still read ({read in the text: right "
                         "with the feed-forwards cut%}). Patched alone, the feed-forwards bring back {facts: brought "
                         "back by the feed-forwards alone%} of the answer, unrelated words {control: brought back by "
                         "unrelated words%}. Trained without feed-forwards: {trained without feed-forwards: facts "
                         "right%}.",
                         "知道的事实有 {facts: right%}；去掉前馈层只剩 {facts: right with the feed-forwards "
                         "cut%}，而文中写着的仍然读得出来（{read in the text: right with the feed-forwards "
                         "cut%}）。只把前馈层的输出换成原文的，答案就恢复 {facts: brought back by the feed-forwards "
                         "alone%}，换无关的词恢复 {control: brought back by unrelated words%}。从头就不带前馈层训练："
                         "{trained without feed-forwards: facts right%}。"},
                .mixed = {"{facts: right%} of the facts are known, {facts: right with the feed-forwards cut%} with the "
                          "feed-forwards cut; of what stands in the text {read in the text: right%} and {read in the "
                          "text: right with the feed-forwards cut%}. Patched alone, the feed-forwards bring back "
                          "{facts: brought back by the feed-forwards alone%} of the answer; with those of another "
                          "country {facts: left with the feed-forwards of another country%} of it is left; unrelated "
                          "words bring back {control: brought back by unrelated words%}. Trained without "
                          "feed-forwards: {trained without feed-forwards: facts right%} known.",
                          "知道的事实有 {facts: right%}，去掉前馈层是 {facts: right with the feed-forwards "
                          "cut%}；文中写着的，读对 {read in the text: right%}，去掉前馈层是 {read in the text: right "
                          "with the feed-forwards cut%}。只换前馈层，答案恢复 {facts: brought back by the "
                          "feed-forwards alone%}；前馈层换成另一个国家的，答案还剩 {facts: left with the "
                          "feed-forwards of another country%}；换无关的词恢复 {control: brought back by unrelated "
                          "words%}。从头就不带前馈层训练，知道 {trained without feed-forwards: facts right%}。"},
                .not_seen = {"The facts were not learnt, or cutting the feed-forwards did not matter: {facts: right%} "
                             "and {facts: right with the feed-forwards cut%}.",
                             "事实没有学会，或者去掉前馈层没有影响：{facts: right%} 和 {facts: right with the "
                             "feed-forwards cut%}。"}},
      .measure = measure_facts};
  return lab;
}

}  // namespace qkv::labs
