// Following a ball under five cups through k swaps: answered at once, or with the steps written down.
#include <array>

#include "labs/labs.h"
#include "labs/planted.h"
#include "labs/steps/cups.h"

namespace qkv::labs {
namespace {

constexpr std::array<int32_t, 5> kSwaps{1, 2, 4, 8, 16};

SeedNumbers measure_thinking_aloud(const LabContext& lab, uint64_t seed) {
  return thinking_aloud_numbers(lab, seed);
}

}  // namespace

SeedNumbers thinking_aloud_numbers(const LabContext& lab, uint64_t seed, Telling told) {
  const auto measured = [&](Telling telling, const char* series) {
    const CupsSchool school{
        .telling = telling, .steps = lab.sized(400), .step_tokens = 1024, .exam = lab.sized(200, 20)};
    const std::vector<double> right = cups_right(lab, school, kSwaps, seed);
    SeedNumbers::Curve curve{"swaps", "share right", series};
    for (size_t i = 0; i < kSwaps.size(); ++i) curve.points.push_back({static_cast<double>(kSwaps[i]), right[i]});
    return curve;
  };
  const SeedNumbers::Curve steps = measured(told, "with steps"), at_once = measured(Telling::at_once, "at once"),
                           dots = measured(Telling::dots, "dots instead of steps"),
                           shuffled = measured(Telling::shuffled, "steps shuffled");
  const double aloud = steps.points.back().y;
  SeedNumbers out;
  out.add_share("1 swap: right at once", at_once.points.front().y);
  out.add_share("16 swaps: right with steps", aloud);
  out.add_share("16 swaps: right at once", at_once.points.back().y);
  out.add_share("control: 16 swaps: right with dots instead of steps", dots.points.back().y);
  out.add_share("control: 16 swaps: right with steps shuffled", shuffled.points.back().y);
  out.add("16 swaps: with steps less at once", aloud - at_once.points.back().y, LabRange::share_difference());
  out.curves = {steps, at_once, dots, shuffled};
  return out;
}

const Lab& thinking_aloud() {
  static const Lab lab{
      .name = "thinking-aloud",
      .claim =
          "A task that needs many steps one after another is solved by a model that writes the steps down, and not by\n"
          "one of equal size that answers at once.",
      .claim_zh = "需要一步接一步才能完成的任务，把步骤写出来的模型做得到，同样大小、直接回答的模型做不到。",
      .how =
          "A ball lies under one of five cups, two cups are swapped at a time: where is it after k swaps? By theory a\n"
          "model of constant depth cannot follow many swaps at once. Two layers of width 64 learn questions of 1 to "
          "16\n"
          "swaps, 400 steps of 1024 tokens: answering at once, or writing the cup after every swap first. Controls "
          "that\n"
          "must fail: as many dots instead of the steps, and the steps in random order. The exam is 200 other "
          "questions,\n"
          "answered token by token; the last cup counts. Guessing is right in a fifth of the cases.",
      .seeds = 3,
      .rules = {{"1 swap: right at once", LabRule::Side::above, 0.9, "without many steps it can do it"},
                {"16 swaps: right with steps", LabRule::Side::above, 0.9, "it follows them"},
                {"16 swaps: with steps less at once", LabRule::Side::above, 0.4, "half of what chance leaves"},
                {"control: 16 swaps: right with dots instead of steps", LabRule::Side::below, 0.5,
                 "tokens that say nothing must not help"},
                {"control: 16 swaps: right with steps shuffled", LabRule::Side::below, 0.5,
                 "steps out of order must not help"}},
      .found =
          {.seen =
               {"After 16 swaps {16 swaps: right with steps%} of the answers are right if the steps are written "
                "down, {16 swaps: right at once%} if they are given at once; dots ({control: 16 swaps: right with "
                "dots instead of steps%}) and shuffled steps ({control: 16 swaps: right with steps shuffled%}) do "
                "not help.",
                "换了 16 次杯子之后，写出步骤的答对 {16 swaps: right with steps%}，直接回答的只有 {16 swaps: right at "
                "once%}；换成省略号（{control: 16 swaps: right with dots instead of "
                "steps%}）或打乱的步骤（{control: 16 swaps: right with steps shuffled%}）都没有用。"},
           .mixed = {"After 16 swaps {16 swaps: right with steps%} of the answers are right with steps and {16 swaps: "
                     "right at once%} at once; {control: 16 swaps: right with dots instead of steps%} with dots, "
                     "{control: 16 swaps: right with steps shuffled%} with shuffled steps; after one swap {1 swap: "
                     "right at once%} at once.",
                     "换了 16 次杯子之后，写步骤答对 {16 swaps: right with steps%}，直接回答 {16 swaps: right at "
                     "once%}，换成省略号 "
                     "{control: 16 swaps: right with dots instead of steps%}，步骤打乱 {control: 16 swaps: right "
                     "with steps shuffled%}；只换一次时，直接回答 {1 swap: right at once%}。"},
           .not_seen =
               {"Writing the steps down did not help: {16 swaps: right with steps%} right with them, {16 "
                "swaps: right at once%} at once.",
                "写出步骤没有帮助：写了答对 {16 swaps: right with steps%}，直接回答 {16 swaps: right at once%}。"}},
      .measure = measure_thinking_aloud};
  return lab;
}

}  // namespace qkv::labs
