// One head against two and eight, with the same width, the same number of weights and the same steps.
#include "labs/attention/two_places.h"
#include "labs/labs.h"
#include "labs/planted.h"

namespace qkv::labs {
namespace {

SeedNumbers measure_one_head(const LabContext& lab, uint64_t seed) {
  return one_head_numbers(lab, seed);
}

}  // namespace

SeedNumbers one_head_numbers(const LabContext& lab, uint64_t seed, OneLayer::Tie tie) {
  const auto right = [&](TwoPlaces task) {
    task.steps = lab.sized(500);
    if (task.model.heads > 1) task.model.tie = tie;
    return two_places_right(lab, task, seed);
  };
  const double one = right({.model = {.heads = 1}}), two = right({.model = {.heads = 2}}),
               eight = right({.model = {.heads = 8}});
  SeedNumbers out;
  out.add_share("two places: right with 1 head", one);
  out.add_share("two places: right with 2 heads", two);
  out.add_share("two places: right with 8 heads", eight);
  out.add("two places: 2 heads less 1 head", two - one, LabRange::share_difference());
  out.add("two places: 8 heads less 1 head", eight - one, LabRange::share_difference());
  out.add_share("control: one place: right with 1 head", right({.model = {.heads = 1}, .second = 1}));
  out.add_share("two places, with a feed-forward: right with 1 head",
                right({.model = {.heads = 1, .feed_forward = true}}));
  return out;
}

const Lab& one_head() {
  static const Lab lab{
      .name = "one-head",
      .claim =
          "One head cannot keep two places apart; two heads can, and so can eight, with the same width and the same\n"
          "number of weights.",
      .claim_zh = "一个头分不清两个位置；总宽度和权重数相同，两个头可以，八个头也可以。",
      .how =
          "Random tokens of four bits; the target is the upper two bits of the token 1 back and the lower two bits of\n"
          "the token 3 back. One layer of attention of width 64, without a feed-forward, 1, 2 or 8 heads, 500 steps "
          "of\n"
          "24 texts. One head has one W_V for both places, so at best it guesses which half comes from where: 0.39.\n"
          "Control: both halves from 1 back, which one head must learn. Beside it, without a rule: one head with a\n"
          "feed-forward behind it.",
      .seeds = 3,
      .rules = {{"two places: right with 1 head", LabRule::Side::below, 0.6, "it mixes them up"},
                {"two places: right with 2 heads", LabRule::Side::above, 0.9, "each head has its place"},
                {"two places: right with 8 heads", LabRule::Side::above, 0.9, "narrow heads can too"},
                {"two places: 2 heads less 1 head", LabRule::Side::above, 0.3, "far more than noise"},
                {"control: one place: right with 1 head", LabRule::Side::above, 0.9,
                 "else it can learn nothing at all"}},
      .found =
          {.seen = {"One head gets {two places: right with 1 head%} right, two heads {two places: right with 2 heads%} "
                    "and eight {two places: right with 8 heads%}; a single place is no trouble for one head ({control: "
                    "one place: right with 1 head%}); with a feed-forward behind it one head gets {two places, with a "
                    "feed-forward: right with 1 head%}.",
                    "一个头答对 {two places: right with 1 head%}，两个头 {two places: right with 2 heads%}，八个头 "
                    "{two places: "
                    "right with 8 heads%}；只看一个位置时，一个头就够了（{control: one place: right with 1 "
                    "head%}），后面加上前馈层则有 "
                    "{two places, with a feed-forward: right with 1 head%}。"},
           .mixed =
               {"Right with one head: {two places: right with 1 head%}, with two {two places: right with 2 heads%}, "
                "with eight {two places: right with 8 heads%}; one head on a single place {control: one place: "
                "right with 1 head%}, and on two with a feed-forward {two places, with a feed-forward: right with "
                "1 head%}.",
                "答对的比例：一个头 {two places: right with 1 head%}，两个头 {two places: right with 2 heads%}，八个头 "
                "{two "
                "places: right with 8 heads%}；一个头只看一个位置 {control: one place: right with 1 "
                "head%}，看两个位置但加上前馈层 {two places, with a feed-forward: right with 1 head%}。"},
           .not_seen =
               {"More heads were no better: {two places: right with 1 head%} right with one, {two places: right "
                "with 2 heads%} with two.",
                "头多并没有更好：一个头答对 {two places: right with 1 head%}，两个头 {two places: right with 2 "
                "heads%}。"}},
      .measure = measure_one_head};
  return lab;
}

}  // namespace qkv::labs
