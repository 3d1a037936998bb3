// Queries, keys and values with a matrix each: what is lost if two of them are one, and what a fourth adds.
#include <algorithm>
#include <cmath>

#include "base/random_fill.h"
#include "core/host_values.h"
#include "labs/attention/recall.h"
#include "labs/attention/two_places.h"
#include "labs/labs.h"
#include "ops/ops.h"

namespace qkv::labs {
namespace {

using Tie = OneLayer::Tie;
constexpr size_t kMatrixWidth = 32, kMatrixRows = 24;

std::vector<float> drawn_matrix(uint64_t seed, uint32_t site, size_t rows) {
  std::vector<float> all(rows * kMatrixWidth);
  const double size = site == 1 ? 1 : 1 / std::sqrt(static_cast<double>(kMatrixWidth));
  fill_normal(fold({.seed = seed, .site = site}), 0, static_cast<float>(size), all);
  return all;
}

// a b, in double.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(a.size());
  for (size_t row = 0; row < a.size() / kMatrixWidth; ++row) {
    for (size_t col = 0; col < kMatrixWidth; ++col) {
      double sum = 0;
      for (size_t i = 0; i < kMatrixWidth; ++i) {
        sum += static_cast<double>(a[row * kMatrixWidth + i]) * static_cast<double>(b[i * kMatrixWidth + col]);
      }
      out[row * kMatrixWidth + col] = static_cast<float>(sum);
    }
  }
  return out;
}

// Attention with queries (x W_Q) M, and with those of one matrix W_Q M: the largest difference of a weight.
double what_a_fourth_adds(const LabContext& lab, uint64_t seed) {
  const std::vector<float> x = drawn_matrix(seed, 1, kMatrixRows), w_q = drawn_matrix(seed, 2, kMatrixWidth),
                           w_k = drawn_matrix(seed, 3, kMatrixWidth), fourth = drawn_matrix(seed, 4, kMatrixWidth);
  Arena arena(lab.engine.device());
  Context cx = lab.engine.context(arena, Precision::f32());
  const Shape shape{static_cast<int64_t>(kMatrixRows), 1, static_cast<int64_t>(kMatrixWidth)};
  const Tensor k = cx.upload(product(x, w_k), shape);
  const Rows rows = Rows::batch(cx, 1, static_cast<int64_t>(kMatrixRows));
  const auto pattern = [&](const std::vector<float>& queries) {
    const Tensor q = cx.upload(queries, shape);
    const ops::AttentionOptions options{.causal = true};
    return host_floats(ops::attention_pattern(cx, q, k, ops::attention(cx, q, k, k, rows, options).lse, rows, options));
  };
  const std::vector<float> four = pattern(product(product(x, w_q), fourth)),
                           three = pattern(product(x, product(w_q, fourth)));
  double most = 0;
  for (size_t i = 0; i < four.size(); ++i) most = std::max(most, std::abs(static_cast<double>(four[i] - three[i])));
  return most;
}

SeedNumbers measure_three_matrices(const LabContext& lab, uint64_t seed) {
  const auto right = [&](int32_t back, Tie tie) {
    return two_places_right(lab, {.model = {.tie = tie}, .first = back, .second = back, .steps = lab.sized(400)}, seed);
  };
  const auto looked_up = [&](int64_t width, Tie tie) {
    return recall_right(lab, {.narrow = width, .tie = tie}, lab.sized(400), seed);
  };
  const double three = looked_up(2, Tie::none), values = looked_up(2, Tie::k_and_v);
  SeedNumbers out;
  out.add_share("3 back: right with three matrices", right(3, Tie::none));
  out.add_share("3 back: right with Q = K", right(3, Tie::q_and_k));
  out.add_share("3 back: right with K = V", right(3, Tie::k_and_v));
  out.add_share("looked up, head of width 2: right with three matrices", three);
  out.add_share("looked up, head of width 2: right with K = V", values);
  out.add("looked up, head of width 2: three matrices less K = V", three - values, LabRange::share_difference());
  out.add_share("control: looked up, head of width 4: right with K = V", looked_up(4, Tie::k_and_v));
  out.add_share("control: 1 back: right with Q = K", right(1, Tie::q_and_k));
  out.add_amount("a fourth matrix, against three that hold it: largest difference of a weight",
                 what_a_fourth_adds(lab, seed));
  return out;
}

LabSentence said_of_matrices() {
  return {
      "The token 3 back is found by three matrices in {3 back: right with three matrices%} of the cases, with Q = K "
      "in {3 back: right with Q = K%}; K = V costs nothing in a wide head ({3 back: right with K = V%}), but one of "
      "width 2 then looks up {looked up, head of width 2: right with K = V%} instead of {looked up, head of width "
      "2: right with three matrices%}; a fourth matrix changes no weight by more than {a fourth matrix, against "
      "three that hold it: largest difference of a weight}.",
      "往回第 3 个词元，三个矩阵答对 {3 back: right with three matrices%}，Q = K 只对 {3 back: right with Q = "
      "K%}；K = V 在宽的头里没有损失（{3 back: right with K = V%}），在宽度只有 2 的头里，查对的从 {looked up, head "
      "of width 2: right with three matrices%} 降到 {looked up, head of width 2: right with K = "
      "V%}；第四个矩阵对任何权重的改变不超过 {a fourth matrix, against three that hold it: largest difference of a "
      "weight}。"};
}

}  // namespace

const Lab& three_matrices() {
  static const Lab lab{
      .name = "three-matrices",
      .claim =
          "Attention needs a matrix each for queries, keys and values: it loses if Q = K or K = V, and a fourth adds\n"
          "nothing.",
      .claim_zh = "注意力的查询、键、值各要一个矩阵：让 Q = K 或 K = V 都会变差，再加第四个也没有用。",
      .how =
          "Random tokens of four bits; the target is the token 3 back. One layer of attention with one head of width\n"
          "64, without a feed-forward, 400 steps of 24 texts; tied matrices begin equal and get the sum of their\n"
          "gradients. By theory a head with Q = K and RoPE gives every token more weight than those before it.\n"
          "Control: the token 1 back, which Q = K must learn, because no louder one is between. K = V is tried where\n"
          "a token is found by one thing and tells another, 8 keys with one of 8 values each, in a head of width 2:\n"
          "it can turn the keys round a circle, or the values, not both. Control: width 4, where there is room for "
          "both.\n"
          "The fourth matrix stands between queries and keys: weights with it against those of three matrices, one of\n"
          "which is the product.",
      .seeds = 8,
      .rules = {{"3 back: right with three matrices", LabRule::Side::above, 0.9, "it looks where it must"},
                {"3 back: right with Q = K", LabRule::Side::below, 0.5, "it cannot look past the near ones"},
                {"looked up, head of width 2: right with three matrices", LabRule::Side::above, 0.9,
                 "it finds and it tells"},
                {"looked up, head of width 2: three matrices less K = V", LabRule::Side::above, 0.05,
                 "a value that is the key costs something"},
                {"control: looked up, head of width 4: right with K = V", LabRule::Side::above, 0.9,
                 "else tying breaks everything"},
                {"control: 1 back: right with Q = K", LabRule::Side::above, 0.9, "else tying breaks everything"},
                {"a fourth matrix, against three that hold it: largest difference of a weight", LabRule::Side::below,
                 1e-4, "rounding"}},
      .found = {.seen = said_of_matrices(),
                .mixed = said_of_matrices(),
                .not_seen =
                    {"Tying matrices cost nothing: {3 back: right with Q = K%} right with Q = K, {3 back: right with "
                     "three matrices%} with three.",
                     "共用矩阵没有损失：Q = K 答对 {3 back: right with Q = K%}，三个矩阵 {3 back: right with three "
                     "matrices%}。"}},
      .measure = measure_three_matrices};
  return lab;
}

}  // namespace qkv::labs
