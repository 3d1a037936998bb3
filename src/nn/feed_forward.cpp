#include "nn/feed_forward.h"

namespace qkv {
namespace {

// Whether the hidden layer can stay inside one fused op: no tap, no check for NaN and no dropout reads it. The bits are
// the same either way.
bool can_fuse(const Context& cx, Place place, const FeedForwardSpec& spec) {
  return !cx.watched(place, Site::mlp_pre) && !cx.watched(place, Site::mlp_post) && !cx.guard_finite &&
         (spec.dropout == 0 || !cx.training);
}

class Dense : public FeedForward {
 public:
  Dense(const FeedForwardSpec& spec, Place place, const Weights& weights, const std::string& name)
      : spec_(spec), place_(place), up_(weights, name + ".up"), down_(weights, name + ".down") {
    if (spec.gated) gate_.emplace(weights, name + ".gate");
  }

  Tensor forward(Context& cx, const Tensor& x, const Rows& rows, const ops::Residual& residual) const override {
    if (!cx.watched(place_, Site::mlp_out)) return run(cx, x, &rows, residual);
    Tensor out = run(cx, x, &rows, {});
    cx.tap(place_, Site::mlp_out, out, &rows);
    return ops::add_residual(cx, residual, out);
  }
  // As the shared expert of a mixture, whose taps show the chosen experts.
  Tensor forward_untapped(Context& cx, const Tensor& x, const ops::Residual& residual) const {
    return run(cx, x, nullptr, residual);
  }

 private:
  // With taps where rows are given.
  Tensor run(Context& cx, const Tensor& x, const Rows* rows, const ops::Residual& residual) const {
    if (can_fuse(cx, place_, spec_)) {
      return ops::feed_forward(cx, as_operand(cx, x),
                               {.up = up_.affine(),
                                .gate = gate_ ? gate_->affine() : ops::Affine{},
                                .down = down_.affine(),
                                .form = spec_.gating(),
                                .out = cx.precision.exact,
                                .residual = residual});
    }
    Tensor pre = gate_ ? gate_->forward(cx, x) : up_.forward(cx, x);  // [N, F]
    if (rows != nullptr) cx.tap(place_, Site::mlp_pre, pre, rows);
    Tensor post = gate_ ? ops::gated(cx, pre, up_.forward(cx, x), spec_.gating()) : ops::activation(cx, pre, spec_.act);
    post = ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
    if (rows != nullptr) cx.tap(place_, Site::mlp_post, post, rows);
    return down_.forward_to_stream(cx, post, residual);
  }

  FeedForwardSpec spec_;
  Place place_;
  Linear up_, down_;
  std::optional<Linear> gate_;
};

// Each token visits its top k experts; rows are sorted by expert, so each expert is one product.
class MixtureOfExperts : public FeedForward {
 public:
  MixtureOfExperts(const FeedForwardSpec& spec, Place place, const Weights& weights, const std::string& name)
      : spec_(spec),
        place_(place),
        router_(weights, name + ".router"),
        gate_(weights, name + ".experts.gate"),
        up_(weights, name + ".experts.up"),
        down_(weights, name + ".experts.down"),
        correction_(weights.find(name + ".router.correction")) {
    if (spec.experts->shared_width > 0) {
      shared_ = std::make_unique<Dense>(spec, place, weights, name + ".shared");
      if (spec.experts->shared_gate) shared_gate_.emplace(weights, name + ".shared_gate");
    }
  }

  Tensor forward(Context& cx, const Tensor& x, const Rows& rows, const ops::Residual& residual) const override {
    const ExpertsSpec& experts = *spec_.experts;
    Tensor logits = router_.forward_exact(cx, x);  // [N, E]
    cx.tap(place_, Site::route_logits, logits, &rows);
    ops::Routed chosen = ops::route(cx, logits, experts.rule, correction_);
    cx.tap(place_, Site::route_ids, chosen.ids, &rows);
    cx.tap(place_, Site::route_weights, chosen.weights, &rows);

    const ops::Dispatch plan = ops::plan_dispatch(cx, chosen.ids, experts.count);
    Tensor sorted = ops::dispatch(cx, as_operand(cx, x), plan);  // [N k, C]
    if (experts.weigh_inputs) sorted = ops::scale_rows(cx, sorted, sorted_weights(cx, chosen.weights, plan));
    const Tensor outputs = run_experts(cx, sorted, rows, plan);                                            // [N k, C]
    Tensor out = ops::combine(cx, outputs, experts.weigh_inputs ? ones(cx, plan) : chosen.weights, plan);  // [N, C]
    if (shared_gate_) {
      // A sigmoid gate is the weight of a choice of one.
      const Tensor gate = ops::route(cx, shared_gate_->forward_exact(cx, x), {.top_k = 1, .sigmoid = true}).weights;
      out = ops::add(cx, out, ops::scale_rows(cx, shared_->forward_untapped(cx, x, {}), gate));
    } else if (shared_) {
      out = shared_->forward_untapped(cx, x, {.x = out});
    }
    cx.tap(place_, Site::mlp_out, out, &rows);
    return ops::add_residual(cx, residual, out);
  }

 private:
  // The weights in the order of the sorted rows: [N, k] -> [N k, 1].
  static Tensor sorted_weights(Context& cx, const Tensor& weights, const ops::Dispatch& plan) {
    const int64_t pairs = plan.order.count();
    return ops::dispatch(cx, weights.view({pairs, 1}),
                         {.order = plan.order, .slots = plan.slots.view({pairs, 1}), .groups = plan.groups});
  }
  static Tensor ones(Context& cx, const ops::Dispatch& plan) {
    return cx.lasting(std::vector<float>(static_cast<size_t>(plan.order.count()), 1.0F), plan.slots.shape());
  }

  // Each expert on its rows, which are sorted by expert: [N k, C] -> [N k, C].
  Tensor run_experts(Context& cx, const Tensor& sorted, const Rows& rows, const ops::Dispatch& plan) const {
    if (can_fuse(cx, place_, spec_)) {
      return ops::feed_forward(cx, sorted,
                               {.up = up_.affine(),
                                .gate = gate_.affine(),
                                .down = down_.affine(),
                                .form = spec_.gating(),
                                .groups = plan.groups,
                                .out = cx.precision.exact});
    }
    Tensor pre = gate_.forward(cx, sorted, plan.groups);  // [N k, F]
    tap_chosen(cx, Site::mlp_pre, pre, rows, plan);
    Tensor post = ops::gated(cx, pre, up_.forward(cx, sorted, plan.groups), spec_.gating());
    post = ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
    tap_chosen(cx, Site::mlp_post, post, rows, plan);
    return down_.forward_to_stream(cx, post, plan.groups);
  }

  // Rows are sorted by expert; a probe sees [N, k, F], the experts of a row in the order they were chosen.
  void tap_chosen(Context& cx, Site site, Tensor& sorted, const Rows& rows, const ops::Dispatch& plan) const {
    if (!cx.watched(place_, site)) return;
    const int64_t n = plan.slots.dim(0), pairs = n * plan.top_k;
    const Tensor slots = plan.slots.view({pairs, 1}), order = plan.order.view({pairs, 1});
    Tensor shown = ops::dispatch(cx, sorted, {.order = plan.slots.view({pairs}), .slots = order, .groups = plan.groups})
                       .view({n, plan.top_k, sorted.cols()});
    cx.tap(place_, site, shown, &rows);
    if (!has(cx.ask(place_, site), Ask::edit)) return;
    sorted = ops::dispatch(cx, shown.flatten_to(2), {.order = plan.order, .slots = slots, .groups = plan.groups});
  }

  FeedForwardSpec spec_;
  Place place_;
  Linear router_, gate_, up_, down_;
  const Param* correction_;
  std::unique_ptr<Dense> shared_;
  std::optional<Linear> shared_gate_;
};

}  // namespace

std::unique_ptr<FeedForward> FeedForward::make(const FeedForwardSpec& spec, Place place, const Weights& weights,
                                               const std::string& name) {
  if (spec.experts) return std::make_unique<MixtureOfExperts>(spec, place, weights, name);
  return std::make_unique<Dense>(spec, place, weights, name);
}

}  // namespace qkv
