// src/ops/experts.cpp
//
//   route     s = softmax(logits) or sigmoid(logits); the top k of s + correction are chosen
//             w = scaling s,  renormalised w = scaling s / S,  S the sum of the chosen s
//             ds_k = scaling dw_k,  renormalised ds_k = scaling (dw_k - sum_j dw_j s_j / S) / S;  then through s
//   dispatch  y[i] = x[row of i]                            dx[r] = sum of its copies' dy
//   combine   y[r] = sum_s w[r, s] z[slot(r, s)]            dz[slot] = w dy[r],   dw[r, s] = dy[r] . z[slot]
//   scale_rows  combine with one slot per row, its own
//   balance   c E sum_e f_e P_e, f_e the share of rows that chose e, P_e the mean probability;
//             f is a count, so only P has a gradient
#include <numeric>

#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

void check_rule(const RouteRule& rule, const Tensor& logits) {
  const int64_t experts = logits.cols();
  QKV_CHECK(rule.top_k >= 1 && rule.top_k <= experts, "route: top_k is ", rule.top_k, " but logits are ", logits,
            Hint("each row chooses between 1 and all ", experts, " experts"));
  QKV_CHECK(rule.groups >= 1 && experts % rule.groups == 0 && rule.top_groups >= 1 && rule.top_groups <= rule.groups,
            "route: ", rule.groups, " groups with the best ", rule.top_groups, " kept do not fit logits ", logits,
            Hint("experts must divide evenly over the groups"));
  QKV_CHECK(rule.top_k <= experts / rule.groups * rule.top_groups, "route: top_k is ", rule.top_k, " but only ",
            experts / rule.groups * rule.top_groups, " experts are in the kept groups",
            Hint("keep more groups or choose fewer experts"));
  check_number("route", "scaling", rule.scaling, 1e-30, 1e30);
}

}  // namespace

Routed route(Context& cx, const Tensor& logits, const RouteRule& rule, const Param* correction) {
  check_vectors(cx, "route", "logits", logits);
  QKV_CHECK(logits.rank() == 2, "route: logits are ", logits, " but must be [N, E]",
            Hint("one row of logits per token"));
  check_rule(rule, logits);
  if (correction != nullptr) check_weight(cx, "route", *correction, {logits.cols()}, logits);

  const Tensor ids = cx.constant({logits.dim(0), rule.top_k}, DType::i32);
  const Tensor weights = cx.make({logits.dim(0), rule.top_k}, cx.precision.exact);
  cx.kernels.route(cx.exec, {.ids = ids,
                             .weights = weights,
                             .logits = logits,
                             .bias = correction != nullptr ? correction->master(cx) : Tensor(),
                             .rule = rule});
  if (cx.tape != nullptr) {
    cx.tape->record("route", [=](Backward& bk) {
      bk.kernels.route_backward(
          bk.exec,
          {.dlogits = bk.grad(logits), .dweights = bk.dy(weights), .logits = logits, .ids = ids, .rule = rule});
    });
  }
  return {ids, cx.finish("route", weights)};
}

Dispatch plan_dispatch(Context& cx, const Tensor& ids, int64_t experts) {
  check_indices(cx, "dispatch", "ids", ids);
  QKV_CHECK(ids.rank() == 2 && experts > 0, "dispatch: ids are ", ids, " but must be [N, k], for ", experts, " experts",
            Hint("ids come from route()"));
  check_index_range(cx, "dispatch", "ids", ids, experts);
  const Dispatch plan{.order = cx.constant({ids.count()}, DType::i32),
                      .slots = cx.constant(ids.shape(), DType::i32),
                      .groups = {cx.constant({experts + 1}, DType::i32), ids.count()},
                      .top_k = ids.dim(1)};
  cx.kernels.dispatch_plan(cx.exec,
                           {.order = plan.order, .slots = plan.slots, .groups = plan.groups.starts(), .ids = ids});
  return plan;
}

Tensor dispatch(Context& cx, const Tensor& x, const Dispatch& plan) {
  check_vectors(cx, "dispatch", "x", x);
  QKV_CHECK(x.rank() == 2 && x.dim(0) == plan.slots.dim(0), "dispatch: x is ", x, " but the plan is of ",
            plan.slots.dim(0), " rows", Hint("plan and x must come from the same rows"));
  const Tensor y = cx.make({plan.order.count(), x.cols()}, x.dtype());
  cx.kernels.dispatch(cx.exec, {.y = y, .x = x, .order = plan.order, .top_k = plan.top_k});
  if (cx.tape != nullptr) {
    cx.tape->record("dispatch", [=](Backward& bk) {
      if (const Grad dx = bk.grad(x)) {
        bk.kernels.combine(bk.exec, {.y = dx.tensor, .z = bk.dy(y), .slots = plan.slots, .weights = {}, .add = dx.add});
      }
    });
  }
  return cx.finish("dispatch", y);
}

Tensor combine(Context& cx, const Tensor& z, const Tensor& weights, const Dispatch& plan) {
  check_vectors(cx, "combine", "z", z);
  check_vectors(cx, "combine", "weights", weights);
  QKV_CHECK(z.rank() == 2 && z.dim(0) == plan.order.count() && weights.shape() == plan.slots.shape(), "combine: z is ",
            z, " and weights are ", weights, " but the plan is of ", plan.slots.shape(), " choices",
            Hint("plan, weights and z must come from the same routing"));
  const Tensor y = cx.make({plan.slots.dim(0), z.cols()}, z.dtype());
  cx.kernels.combine(cx.exec, {.y = y, .z = z, .slots = plan.slots, .weights = weights});
  if (cx.tape != nullptr) {
    cx.tape->record("combine", [=](Backward& bk) {
      bk.kernels.combine_backward(bk.exec, {.dz = bk.grad(z),
                                            .dweights = bk.grad(weights),
                                            .dy = bk.dy(y),
                                            .z = z,
                                            .slots = plan.slots,
                                            .weights = weights});
    });
  }
  return cx.finish("combine", y);
}

Tensor scale_rows(Context& cx, const Tensor& x, const Tensor& factors) {
  check_vectors(cx, "scale_rows", "x", x);
  check_vectors(cx, "scale_rows", "factors", factors);
  QKV_CHECK(x.rank() == 2, "scale_rows: x is ", x, " but must be [N, C]", Hint("join the other axes first"));
  check_shape("scale_rows", "factors", factors, {x.dim(0), 1});
  std::vector<int32_t> own(static_cast<size_t>(x.dim(0)));
  std::iota(own.begin(), own.end(), 0);
  const Tensor slots = cx.upload(own).view({x.dim(0), 1});
  const Tensor y = cx.make(x.shape(), x.dtype());
  cx.kernels.combine(cx.exec, {.y = y, .z = x, .slots = slots, .weights = factors});
  if (cx.tape != nullptr) {
    cx.tape->record("scale_rows", [=](Backward& bk) {
      bk.kernels.combine_backward(
          bk.exec,
          {.dz = bk.grad(x), .dweights = bk.grad(factors), .dy = bk.dy(y), .z = x, .slots = slots, .weights = factors});
    });
  }
  return cx.finish("scale_rows", y);
}

Tensor balance_loss(Context& cx, std::span<const RouterUse> layers, double coefficient) {
  QKV_CHECK(!layers.empty(), "balance_loss: no layers were given", Hint("pass the router logits of every layer"));
  check_number("balance_loss", "coefficient", coefficient, 0, 1e30);
  const int64_t experts = layers.front().logits.cols();
  int64_t rows = 0;
  for (const RouterUse& layer : layers) {
    check_vectors(cx, "balance_loss", "logits", layer.logits);
    check_indices(cx, "balance_loss", "ids", layer.ids);
    QKV_CHECK(layer.logits.rank() == 2 && layer.logits.cols() == experts && layer.ids.rank() == 2 &&
                  layer.ids.dim(0) == layer.logits.dim(0),
              "balance_loss: logits are ", layer.logits, " with ids ", layer.ids, " but must be [N, ", experts,
              "] and [N, k]", Hint("all layers must have the same experts"));
    check_index_range(cx, "balance_loss", "ids", layer.ids, experts);
    rows += layer.logits.dim(0);
  }
  QKV_CHECK(rows > 0, "balance_loss: the layers have no rows", Hint("an empty batch has no balance"));

  const DType exact = cx.precision.exact;
  const Tensor loss = cx.make({1}, exact);
  const Tensor counts = cx.make({experts}, exact), mass = cx.make({experts}, exact);
  const auto total = static_cast<double>(rows);
  const double factor = coefficient * static_cast<double>(experts) / (total * total);
  for (const Tensor& t : {counts, mass}) cx.kernels.fill(cx.exec, {.y = t, .value = 0});
  for (const RouterUse& layer : layers) {
    cx.kernels.router_load(cx.exec, {.counts = counts, .mass = mass, .logits = layer.logits, .ids = layer.ids});
  }
  cx.kernels.balance(cx.exec, {.loss = loss, .counts = counts, .mass = mass, .factor = factor});
  if (cx.tape != nullptr) {
    cx.tape->record("balance_loss", [=, all = std::vector<RouterUse>(layers.begin(), layers.end())](Backward& bk) {
      const Tensor dmass = bk.make({experts}, exact);
      bk.kernels.balance_backward(bk.exec, {.dmass = dmass, .dloss = bk.dy(loss), .counts = counts, .factor = factor});
      for (const RouterUse& layer : all) {
        bk.kernels.router_load_backward(bk.exec,
                                        {.dlogits = bk.grad(layer.logits), .dmass = dmass, .logits = layer.logits});
      }
    });
  }
  return cx.finish("balance_loss", loss);
}

}  // namespace qkv::ops
