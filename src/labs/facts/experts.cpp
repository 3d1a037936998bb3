// A mixture of experts against its dense twin: how much each knows at equal compute.
#include "labs/facts/memorising.h"
#include "labs/labs.h"

namespace qkv::labs {
namespace {

SeedNumbers measure_experts(const LabContext& lab, uint64_t seed) {
  using Form = FactMemory::Form;
  const auto known = [&](Form form, int64_t facts) {
    return facts_known(lab, {.form = form, .facts = facts, .steps = lab.sized(400)}, seed);
  };
  const double experts = known(Form::experts, 4096), dense = known(Form::dense, 4096), tied = known(Form::tied, 4096);
  SeedNumbers out;
  out.add_share("4096 facts: known with experts", experts);
  out.add_share("4096 facts: known by the dense twin", dense);
  out.add("4096 facts: experts less dense twin", experts - dense, LabRange::share_difference());
  out.add_amount("multiplications for a token, experts over dense twin",
                 feed_forward_products(Form::experts) / feed_forward_products(Form::dense));
  out.add("control: 4096 facts: experts tied together less dense twin", tied - dense, LabRange::share_difference());
  out.add_share("control: 256 facts: known by the dense twin", known(Form::dense, 256));
  out.add_share("4096 facts: known by a dense block with all the experts' weights", known(Form::large, 4096));
  return out;
}

}  // namespace

const Lab& experts() {
  static const Lab lab{
      .name = "experts",
      .claim =
          "A mixture of experts knows more than a dense model that computes as much for every token: what it can know\n"
          "goes with all its weights, what it computes with the few that a token visits.",
      .claim_zh =
          "每个词元的计算量相同时，混合专家比稠密模型记得更多：能记多少看全部权重，要算多少只看词元经过的那几个专家。",
      .how =
          "Facts to be learnt by heart: 4096 pairs of words (64 x 64), each with one of 64 values drawn at random. "
          "One\n"
          "layer of width 32, 400 steps of 512 facts. Experts: a token visits 2 of 16, of width 16 each. Dense twin: "
          "a\n"
          "feed-forward of width 38, which takes no fewer multiplications than two experts and their router. Counted:\n"
          "the facts known at the end; guessing knows 1 in 64. Controls: all experts tied to one another must lose\n"
          "what experts gain, and with 256 facts the dense twin must know all, so that it is room it lacks. Reported,\n"
          "without a rule: a dense block with all the experts' weights, which computes 7 times as much.",
      .seeds = 3,
      .rules = {{"4096 facts: experts less dense twin", LabRule::Side::above, 0.2, "a fifth of all facts"},
                {"multiplications for a token, experts over dense twin", LabRule::Side::below, 1, "no more compute"},
                {"control: 4096 facts: experts tied together less dense twin", LabRule::Side::below, 0.05,
                 "experts that are one must not help"},
                {"control: 256 facts: known by the dense twin", LabRule::Side::above, 0.95,
                 "with room for all it learns all"}},
      .found =
          {.seen =
               {"Of 4096 facts the experts know {4096 facts: known with experts%} and their dense twin {4096 facts: "
                "known by the dense twin%}, though the experts take {multiplications for a token, experts over dense "
                "twin} times the twin's multiplications; of 256 facts the twin knows {control: 256 facts: known by "
                "the dense twin%}.",
                "4096 条事实，专家记住 {4096 facts: known with experts%}，稠密模型记住 {4096 facts: known by the dense "
                "twin%}，而专家的乘法次数是稠密模型的 {multiplications for a token, experts over dense twin} 倍；只有 "
                "256 条时，稠密模型记住 {control: 256 facts: known by the dense twin%}。"},
           .mixed =
               {"Of 4096 facts the experts know {4096 facts: known with experts%}, their dense twin {4096 facts: known "
                "by the dense twin%}, a dense block with all their weights {4096 facts: known by a dense block with "
                "all the experts' weights%}; of 256 facts the twin knows {control: 256 facts: known by the dense "
                "twin%}.",
                "4096 条事实，专家记住 {4096 facts: known with experts%}，稠密模型记住 {4096 facts: known by the dense "
                "twin%}，权重与全部专家一样多的稠密模型记住 {4096 facts: known by a dense block with all the experts' "
                "weights%}；只有 256 条时，稠密模型记住 {control: 256 facts: known by the dense twin%}。"},
           .not_seen = {"Experts knew no more than their dense twin: {4096 facts: known with experts%} against {4096 "
                        "facts: known by the dense twin%}.",
                        "专家并不比稠密模型记得更多：{4096 facts: known with experts%} 对 {4096 facts: known by the "
                        "dense twin%}。"}},
      .measure = measure_experts};
  return lab;
}

}  // namespace qkv::labs
