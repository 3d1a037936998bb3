// What one training learns first: how often words are, what follows what, grammar, and copying from the text.
#include <algorithm>
#include <cmath>

#include "labs/labs.h"
#include "labs/learning/phase_exam.h"
#include "labs/planted.h"

namespace qkv::labs {
namespace {

const double kGuessedName = std::log(static_cast<double>(SmallLanguage::kNames));

struct Nearest {
  double step = 0, distance = 0;
};
Nearest nearest(const PhaseRun& run, double PhaseDistance::*to) {
  const auto closer = [&](const PhasePoint& a, const PhasePoint& b) { return a.at.*to < b.at.*to; };
  const PhasePoint& found = *std::min_element(run.points.begin(), run.points.end(), closer);
  return {std::max(1.0, found.step), found.at.*to};
}

// The first step after which known names cost less than a third of a guess; the last one if they never do.
double induction_step(const PhaseRun& run) {
  const auto found = std::find_if(run.points.begin(), run.points.end(),
                                  [](const PhasePoint& p) { return p.at.known_names < kGuessedName / 3; });
  return std::max(1.0, found == run.points.end() ? run.points.back().step : found->step);
}

}  // namespace

SeedNumbers phases_numbers(const LabContext& lab, uint64_t seed, bool shuffled) {
  const int64_t steps = lab.sized(600);
  const PhaseExam exam(seed, lab.sized(24, 4));
  const PhaseRun two = run_phases(lab, exam, {.layers = 2, .steps = steps, .shuffled = shuffled}, seed),
                 even = even_path(exam, two),
                 one = run_phases(lab, exam, {.layers = 1, .steps = steps, .shuffled = shuffled}, seed),
                 without_order = run_phases(lab, exam, {.layers = 2, .steps = steps, .shuffled = true}, seed);
  const Nearest unigram = nearest(two, &PhaseDistance::unigram), bigram = nearest(two, &PhaseDistance::bigram),
                grammar = nearest(two, &PhaseDistance::grammar);
  const double induction = induction_step(two);
  SeedNumbers out;
  out.add_amount("step nearest to the unigram", unigram.step);
  out.add_amount("step nearest to the bigram", bigram.step);
  out.add_amount("step nearest to the grammar", grammar.step);
  out.add_amount("step of induction", induction);
  out.add_amount("bigram over unigram, steps", bigram.step / unigram.step);
  out.add_amount("grammar over bigram, steps", grammar.step / bigram.step);
  out.add_amount("induction over grammar, steps", induction / grammar.step);
  out.add_amount("unigram: distance when nearest, over an even path's",
                 unigram.distance / nearest(even, &PhaseDistance::unigram).distance);
  out.add_amount("bigram: distance when nearest, over an even path's",
                 bigram.distance / nearest(even, &PhaseDistance::bigram).distance);
  out.add_amount("grammar: distance when nearest, over an even path's",
                 grammar.distance / nearest(even, &PhaseDistance::grammar).distance);
  out.add_amount("loss of known names at the end", two.points.back().at.known_names);
  out.add_amount("control: one layer: loss of known names at the end", one.points.back().at.known_names);
  out.add_amount("control: shuffled words: nearest to the grammar, nats",
                 nearest(without_order, &PhaseDistance::grammar).distance);
  out.add_amount("control: shuffled words: loss of known names at the end", without_order.points.back().at.known_names);
  for (const auto& [name, which] : {std::pair{"unigram", &PhaseDistance::unigram},
                                    {"bigram", &PhaseDistance::bigram},
                                    {"grammar", &PhaseDistance::grammar}}) {
    SeedNumbers::Curve curve{"step", "distance of the model's guesses, nats", name};
    for (const PhasePoint& p : two.points) curve.points.push_back({p.step, p.at.*which});
    out.curves.push_back(curve);
  }
  SeedNumbers::Curve names{"step", "loss of known names", "2 layers"}, in_one{"step", "loss of known names", "1 layer"};
  for (const PhasePoint& p : two.points) names.points.push_back({p.step, p.at.known_names});
  for (const PhasePoint& p : one.points) in_one.points.push_back({p.step, p.at.known_names});
  out.curves.push_back(names);
  out.curves.push_back(in_one);
  return out;
}

const Lab& phases() {
  static const Lab lab{
      .name = "phases",
      .claim =
          "A training has phases: first the model guesses by how often words are, then by the word before, then by "
          "the\n"
          "grammar, and last it copies from the text (induction).",
      .claim_zh = "训练分阶段：先按词的多少猜，再按前一个词猜，然后懂语法，最后学会从上文照搬（归纳）。",
      .how =
          "A language of 46 words: an article of one of three classes, 0 to 2 adjectives, a noun of the class, its\n"
          "name, a verb of the class, a stop. Every text gives its nouns names of its own, so a name is known only\n"
          "where its noun comes again. Two layers of attention of width 64, without feed-forwards, 600 steps of 24\n"
          "texts of 64 words. After 0, 1, 2, ... steps: the distance (KL) of the model's guesses from those of the\n"
          "unigram, of the bigram and of the exact grammar. A phase is dated by the step nearest to it; induction by\n"
          "the first step at which known names cost less than a third of a guess (0.92 nats). Every path from nothing\n"
          "to the end passes these in order, so a phase must also come much nearer than the even path, on which all\n"
          "is learnt at the same pace (the logits of the end times 0 to 1). Controls that must fail: one layer, which\n"
          "cannot copy, and learning from words in random order, from which neither grammar nor copying can come.",
      .seeds = 5,
      .rules =
          {{"bigram over unigram, steps", LabRule::Side::above, 1, "later"},
           {"grammar over bigram, steps", LabRule::Side::above, 1, "later"},
           {"induction over grammar, steps", LabRule::Side::above, 1, "later"},
           {"unigram: distance when nearest, over an even path's", LabRule::Side::below, 0.7, "a phase of its own"},
           {"bigram: distance when nearest, over an even path's", LabRule::Side::below, 0.7, "a phase of its own"},
           {"grammar: distance when nearest, over an even path's", LabRule::Side::below, 0.7, "a phase of its own"},
           {"loss of known names at the end", LabRule::Side::below, 0.924, "nats, a third of a guess: it copies"},
           {"control: one layer: loss of known names at the end", LabRule::Side::above, 0.924,
            "nats, a third of a guess: it cannot"},
           {"control: shuffled words: nearest to the grammar, nats", LabRule::Side::above, 1, "nothing of it is there"},
           {"control: shuffled words: loss of known names at the end", LabRule::Side::above, 0.924,
            "nats, a third of a guess: it cannot"}},
      .found =
          {.seen =
               {"The model is nearest to the unigram after {step nearest to the unigram} steps, to the bigram after "
                "{step nearest to the bigram}, to the grammar after {step nearest to the grammar}, and copies names "
                "after {step of induction}; with one layer known names still cost {control: one layer: loss of known "
                "names at the end} nats at the end.",
                "模型在第 {step nearest to the unigram} 步最接近词频，第 {step nearest to the bigram} "
                "步最接近二元统计，第 {step nearest to the grammar} 步最接近语法，第 {step of induction} "
                "步开始照搬名字；只有一层的模型到最后，说过的名字仍要 {control: one layer: loss of known names at the "
                "end} 纳特。"},
           .mixed =
               {"Nearest to the unigram after {step nearest to the unigram} steps, to the bigram after {step nearest "
                "to "
                "the bigram}, to the grammar after {step nearest to the grammar}; known names cost {loss of known "
                "names at the end} nats at the end, {control: one layer: loss of known names at the end} with one "
                "layer.",
                "最接近词频在第 {step nearest to the unigram} 步，二元统计第 {step nearest to the bigram} 步，语法第 "
                "{step nearest to the grammar} 步；最后说过的名字要 {loss of known names at the end} 纳特，一层模型要 "
                "{control: one layer: loss of known names at the end} 纳特。"},
           .not_seen = {"The phases did not come one after the other.", "这些阶段没有依次出现。"}},
      .measure = [](const LabContext& context, uint64_t seed) { return phases_numbers(context, seed); }};
  return lab;
}

}  // namespace qkv::labs
