// src/ops/cross_entropy.cpp
//
//   l = cap(x w^T + b)     lse = log sum_v exp(l_v)     p = exp(l - lse)
//   loss_r = (1 - s)(lse - l_target) + s (lse - mean(l)) + z lse^2        0 where the target is `ignore`
//   loss   = sum_r loss_r / divisor
//   dl_v   = p_v (1 + 2 z lse) - (1 - s)[v = target] - s / V,   through the cap
//   dx = dl w,   dw = dl^T x,   db = sum over rows of dl
//
// Head and loss are one op so that the logits of all rows are never in memory together, but on a device that keeps them.
#include <algorithm>

#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

int64_t padded_logits(int64_t vocabulary) {  // rows at multiples of 128 bytes
  return (vocabulary + 63) / 64 * 64;
}

}  // namespace

Loss cross_entropy(Context& cx, const Tensor& x, const Param& w, const Tensor& targets,
                   const CrossEntropyOptions& options) {
  constexpr const char* kOp = "cross_entropy";
  check_vectors(cx, kOp, "x", x);
  QKV_CHECK(x.rank() >= 2, kOp, ": x is ", x, " but must be [..., ", x.cols(), "]", Hint("view one row as [1, C]"));
  QKV_CHECK(w.shape().rank() == 2 && w.shape()[0] > 0, kOp, ": the head '", w.name(), "' is ", w.shape(),
            " but must be [V, C]", Hint("x is ", x));
  const int64_t vocabulary = w.shape()[0];
  check_weight(cx, kOp, w, {vocabulary, x.cols()}, x);
  if (options.bias != nullptr) check_weight(cx, kOp, *options.bias, {vocabulary}, x);
  check_indices(cx, kOp, "targets", targets);
  QKV_CHECK(targets.count() == x.rows(), kOp, ": x is ", x, " with ", x.rows(), " rows but targets are ", targets,
            Hint("one target per row"));
  const CrossEntropyRule rule = options.rule;
  check_index_range(cx, kOp, "targets", targets, vocabulary, rule.ignore);
  check_number(kOp, "label smoothing", rule.smoothing, 0, 1);
  check_number(kOp, "z_loss", rule.z_loss, 0, 1e30);
  check_number(kOp, "softcap", rule.softcap, 0, 1e30);
  check_number(kOp, "divisor", options.divisor, 1e-30, 1e30);

  const DType exact = cx.precision.exact;
  const Tensor rows = x.flatten_to(2);
  const Tensor loss = cx.make({1}, exact);
  const Tensor losses = cx.constant({rows.dim(0)}, exact), lse = cx.constant({rows.dim(0)}, exact);
  const Tensor weight = w.value(cx), tiles = weight.dtype() == DType::bf16 ? w.tiles(cx) : Tensor();
  const Param* b = options.bias;
  const Tensor bias = b != nullptr ? b->value(cx) : Tensor();
  const double factor = 1 / options.divisor;
  // Logits, where the device keeps them: of all rows for backward, or while recomputing of some at a time.
  const DType logit_type = weight.dtype() == DType::bf16 ? DType::bf16 : exact;
  const bool roomy = cx.exec.device->keeps_logits(), keeps = roomy && cx.tape != nullptr && !cx.recompute_layers;
  const Shape some{std::min(rows.dim(0), kLogitRows), padded_logits(vocabulary)};
  const Tensor logits = keeps ? cx.constant(some.with(0, rows.dim(0)), logit_type) : Tensor();
  cx.kernels.cross_entropy(cx.exec, {.losses = losses,
                                     .lse = lse,
                                     .x = rows,
                                     .w = weight,
                                     .tiles = tiles,
                                     .b = bias,
                                     .targets = targets,
                                     .rule = rule,
                                     .logits = logits});
  cx.kernels.sum(cx.exec, {.y = loss, .x = losses, .factor = factor});
  if (cx.tape != nullptr) {
    cx.tape->record(kOp, [=, &w](Backward& bk) {
      bk.kernels.cross_entropy_backward(bk.exec, {.dx = bk.grad(rows),
                                                  .dw = bk.grad(w),
                                                  .db = b != nullptr ? bk.grad(*b) : Grad{},
                                                  .dloss = bk.dy(loss),
                                                  .factor = factor,
                                                  .x = rows,
                                                  .w = weight,
                                                  .b = bias,
                                                  .targets = targets,
                                                  .lse = lse,
                                                  .tiles = tiles,
                                                  .rule = rule,
                                                  .logits = keeps   ? logits
                                                            : roomy ? bk.make(some, logit_type)
                                                                    : Tensor(),
                                                  .kept = keeps});
    });
  }
  return {cx.finish(kOp, loss), losses};
}

}  // namespace qkv::ops
