// Routing by hand: chosen experts and weights; no pair is dropped; the balance loss has its known values.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

TEST(Route, ChoosesTheLargestAndTiesGoToTheLowerExpert) {
  Pass pass({.precision = Precision::f64()});
  const Tensor logits = pass.input(Numbers{0, 2, 1, 2,  // a tie
                                           5, 4, 3, 2},
                                   {2, 4});
  const ops::Routed got = ops::route(pass.cx, logits, {.top_k = 2});
  EXPECT_EQ(to_host(got.ids), (Numbers{1, 3, 0, 1}));
  const double first = std::exp(0.0) + 2 * std::exp(2.0) + std::exp(1.0);
  EXPECT_NEAR(to_host(got.weights)[0], std::exp(2.0) / first, 1e-15);
  const ops::Routed renormalised = ops::route(pass.cx, logits, {.top_k = 2, .renormalise = true, .scaling = 3});
  EXPECT_NEAR(to_host(renormalised.weights)[0], 1.5, 1e-14);
}

// Eight experts in four groups. By the sum of their two best, groups 1 and 3 win; the single best expert (0) loses.
TEST(Route, OnlyExpertsOfTheBestGroupsCompete) {
  Pass pass({.precision = Precision::f64()});
  const Tensor logits = pass.input(Numbers{3, -5, 1, 1, -1, 0, 2, 0.5}, {1, 8});
  const RouteRule rule{.top_k = 2, .sigmoid = true, .groups = 4, .top_groups = 2};
  EXPECT_EQ(to_host(ops::route(pass.cx, logits, rule).ids), (Numbers{6, 2}));
  // A correction moves the choice, never the weight.
  const Param& correction = pass.param("correction", Numbers{0, 0, 0, 0, 0, 0, 0, 9}, {8});
  const ops::Routed moved = ops::route(pass.cx, logits, rule, &correction);
  EXPECT_EQ(to_host(moved.ids), (Numbers{7, 6}));
  EXPECT_NEAR(to_host(moved.weights)[0], 1 / (1 + std::exp(-0.5)), 1e-15);
}

RC_GTEST_PROP(DispatchProperty, NoRowIsDroppedAndExpertsStandInOrder, ()) {
  const auto rows = *rc::gen::inRange<int64_t>(0, 20);
  const auto top_k = *rc::gen::inRange<int64_t>(1, 4);
  const auto experts = *rc::gen::inRange<int32_t>(1, 6);
  const auto ids = *rc::gen::container<std::vector<int32_t>>(static_cast<size_t>(rows * top_k),
                                                             rc::gen::inRange<int32_t>(0, experts));
  Pass pass;
  const ops::Dispatch plan = ops::plan_dispatch(pass.cx, pass.indices(ids, {rows, top_k}), experts);
  const Numbers order = to_host(plan.order), slots = to_host(plan.slots), starts = to_host(plan.groups.starts());
  RC_ASSERT(starts.front() == 0.0);
  RC_ASSERT(starts.back() == static_cast<double>(ids.size()));
  std::vector<bool> seen(ids.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto choice = static_cast<size_t>(order[i]);
    RC_ASSERT(!seen[choice]);
    seen[choice] = true;
    RC_ASSERT(slots[choice] == static_cast<double>(i));
    const auto expert = static_cast<size_t>(ids[choice]);
    RC_ASSERT(starts[expert] <= static_cast<double>(i));
    RC_ASSERT(static_cast<double>(i) < starts[expert + 1]);
  }
}

// Correctness.md: at uniform routing the balance loss is its coefficient times k.
TEST(BalanceLoss, OfUniformRoutingIsTheCoefficientTimesK) {
  Pass pass({.precision = Precision::f64()});
  constexpr int32_t rows = 8, experts = 4;
  const Tensor logits = pass.input(Numbers(rows * experts, 0.7), {rows, experts});
  std::vector<int32_t> ids;
  for (int32_t r = 0; r < rows; ++r) {
    ids.push_back(r % experts);
    ids.push_back((r + 1) % experts);
  }
  const std::vector<ops::RouterUse> layers(3, {logits, pass.indices(ids, {rows, 2})});
  EXPECT_NEAR(to_host(ops::balance_loss(pass.cx, layers, 0.02)).front(), 0.02 * 2, 1e-15);
}

TEST(BalanceLoss, OfACollapsedRouterIsTheCoefficientTimesTheExperts) {
  Pass pass({.precision = Precision::f64()});
  Numbers logits(5 * 4, 0.0);
  for (size_t r = 0; r < 5; ++r) logits[r * 4 + 2] = 60;  // all mass on expert 2
  const Tensor all = pass.input(logits, {5, 4});
  const std::vector<ops::RouterUse> layers{{all, ops::route(pass.cx, all, {.top_k = 1}).ids}};
  EXPECT_NEAR(to_host(ops::balance_loss(pass.cx, layers, 0.5)).front(), 0.5 * 4, 1e-12);
}

}  // namespace
}  // namespace qkv::test
