// Learnt vectors instead of learnt matrices for queries, keys and values.
#include "labs/attention/recall.h"
#include "labs/attention/two_places.h"
#include "labs/labs.h"

namespace qkv::labs {
namespace {

using Fixed = OneLayer::Fixed;

SeedNumbers measure_fixed_qkv(const LabContext& lab, uint64_t seed) {
  const auto looked_up = [&](Fixed fixed) { return recall_right(lab, {.fixed = fixed}, lab.sized(400), seed); };
  const auto from_a_place = [&](Fixed fixed) {
    return two_places_right(lab, {.model = {.fixed = fixed}, .first = 3, .second = 3, .steps = lab.sized(400)}, seed);
  };
  SeedNumbers out;
  out.add_share("by content: right with matrices", looked_up(Fixed::none));
  out.add_share("by content: right with learnt vectors for Q and K", looked_up(Fixed::q_and_k));
  out.add_share("by content: right with a learnt vector for V", looked_up(Fixed::v));
  out.add_share("control: by place: right with learnt vectors for Q and K", from_a_place(Fixed::q_and_k));
  return out;
}

}  // namespace

const Lab& fixed_qkv() {
  static const Lab lab{
      .name = "fixed-qkv",
      .claim =
          "Queries, keys and values must be computed from the token by learnt matrices; vectors that are learnt once\n"
          "and are the same for every token find a place, but not a meaning.",
      .claim_zh =
          "查询、键、值要由学到的矩阵从每个词算出来；学一次就固定、对每个词都一样的向量只能找位置，找不到内容。",
      .how =
          "Facts in random order, 8 keys with one of 8 values each, then questions for keys: one layer of attention\n"
          "with one head of width 64, without a feed-forward, 400 steps of 24 texts, with matrices or with one learnt\n"
          "vector instead for Q and K, or for V. Always saying the text's most frequent value is right in about a\n"
          "third. Control: the token 3 back, a place, which learnt vectors for Q and K must find.",
      .seeds = 3,
      .rules = {{"by content: right with matrices", LabRule::Side::above, 0.9, "it compares keys"},
                {"by content: right with learnt vectors for Q and K", LabRule::Side::below, 0.6, "it cannot compare"},
                {"by content: right with a learnt vector for V", LabRule::Side::below, 0.6, "nothing is brought along"},
                {"control: by place: right with learnt vectors for Q and K", LabRule::Side::above, 0.9,
                 "a place needs no matrix"}},
      .found =
          {.seen =
               {"What is asked for is found in {by content: right with matrices%} of the cases with matrices, in {by "
                "content: right with learnt vectors for Q and K%} with learnt vectors for Q and K and in {by "
                "content: right with a learnt vector for V%} with one for V; a place is found without matrices "
                "({control: by place: right with learnt vectors for Q and K%}).",
                "用矩阵，{by content: right with matrices%} 的问题找到了答案；Q 和 K 换成学到的向量只有 {by content: "
                "right with "
                "learnt vectors for Q and K%}，V 换成向量只有 {by content: right with a learnt vector for "
                "V%}；找位置倒不需要矩阵（{control: by place: right with learnt vectors for Q and K%}）。"},
           .mixed =
               {"Found with matrices: {by content: right with matrices%}, with learnt vectors for Q and K {by "
                "content: right with learnt vectors for Q and K%}, for V {by content: right with a learnt vector "
                "for V%}; a place with learnt vectors for Q and K {control: by place: right with learnt vectors "
                "for Q and K%}.",
                "找到的比例：用矩阵 {by content: right with matrices%}，Q 和 K 换成向量 {by content: right with learnt "
                "vectors for Q and K%}，V 换成向量 {by content: right with a learnt vector for V%}；用向量找位置 "
                "{control: by place: right with learnt vectors for Q and K%}。"},
           .not_seen = {"Learnt vectors did as well as matrices, or neither learnt the task.",
                        "学到的向量和矩阵一样好，或者两者都没有学会。"}},
      .measure = measure_fixed_qkv};
  return lab;
}

}  // namespace qkv::labs
