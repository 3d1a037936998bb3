#include "nn/feed_forward.h"

namespace qkv {
namespace {

class Dense : public FeedForward {
 public:
  Dense(const FeedForwardSpec& spec, Place place, const Weights& weights, const std::string& name)
      : spec_(spec), place_(place), up_(weights, name + ".up"), down_(weights, name + ".down") {
    if (spec.gated) gate_.emplace(weights, name + ".gate");
  }

  Tensor forward(Context& cx, const Tensor& x, const Rows& rows) const override {
    Tensor pre = before(cx, x);
    cx.tap(place_, Site::mlp_pre, pre, &rows);
    Tensor post = after(cx, pre, x);
    cx.tap(place_, Site::mlp_post, post, &rows);
    Tensor out = down_.forward_to_stream(cx, post);
    cx.tap(place_, Site::mlp_out, out, &rows);
    return out;
  }
  // As a part of a mixture, whose taps show the experts that were chosen.
  Tensor forward_untapped(Context& cx, const Tensor& x) const {
    return down_.forward_to_stream(cx, after(cx, before(cx, x), x));
  }

 private:
  Tensor before(Context& cx, const Tensor& x) const { return gate_ ? gate_->forward(cx, x) : up_.forward(cx, x); }
  Tensor after(Context& cx, const Tensor& pre, const Tensor& x) const {  // [N, F]
    const Tensor post =
        gate_ ? ops::gated(cx, pre, up_.forward(cx, x), spec_.gating()) : ops::activation(cx, pre, spec_.act);
    return ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
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
    }
  }

  Tensor forward(Context& cx, const Tensor& x, const Rows& rows) const override {
    const ExpertsSpec& experts = *spec_.experts;
    Tensor logits = router_.forward_exact(cx, x);  // [N, E]
    cx.tap(place_, Site::route_logits, logits, &rows);
    ops::Routed chosen = ops::route(cx, logits, experts.rule, correction_);
    cx.tap(place_, Site::route_ids, chosen.ids, &rows);
    cx.tap(place_, Site::route_weights, chosen.weights, &rows);

    const ops::Dispatch plan = ops::plan_dispatch(cx, chosen.ids, experts.count);
    const Tensor sorted = ops::dispatch(cx, as_operand(cx, x), plan);  // [N k, C]
    Tensor pre = gate_.forward(cx, sorted, plan.groups);               // [N k, F]
    tap_chosen(cx, Site::mlp_pre, pre, rows, plan);
    Tensor post = ops::gated(cx, pre, up_.forward(cx, sorted, plan.groups), spec_.gating());
    post = ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
    tap_chosen(cx, Site::mlp_post, post, rows, plan);
    const Tensor brought = down_.forward_to_stream(cx, post, plan.groups);
    Tensor out = ops::combine(cx, brought, chosen.weights, plan);  // [N, C]
    if (shared_) out = ops::add(cx, out, shared_->forward_untapped(cx, x));
    cx.tap(place_, Site::mlp_out, out, &rows);
    return out;
  }

 private:
  // Rows lie sorted by expert; who looks sees [N, k, F], each row's experts in the order they were chosen.
  void tap_chosen(Context& cx, Site site, Tensor& sorted, const Rows& rows, const ops::Dispatch& plan) const {
    const Ask asked = cx.ask(place_, site);
    if (!has(asked, Ask::read | Ask::edit)) return;
    const int64_t n = plan.slots.dim(0), pairs = n * plan.top_k;
    const Tensor slots = plan.slots.view({pairs, 1}), order = plan.order.view({pairs, 1});
    Tensor shown = ops::dispatch(cx, sorted, {.order = plan.slots.view({pairs}), .slots = order, .groups = plan.groups})
                       .view({n, plan.top_k, sorted.cols()});
    cx.tap(place_, site, shown, &rows);
    if (!has(asked, Ask::edit)) return;
    sorted = ops::dispatch(cx, shown.flatten_to(2), {.order = plan.order, .slots = slots, .groups = plan.groups});
  }

  FeedForwardSpec spec_;
  Place place_;
  Linear router_, gate_, up_, down_;
  const Param* correction_;
  std::unique_ptr<Dense> shared_;
};

}  // namespace

std::unique_ptr<FeedForward> FeedForward::make(const FeedForwardSpec& spec, Place place, const Weights& weights,
                                               const std::string& name) {
  if (spec.experts) return std::make_unique<MixtureOfExperts>(spec, place, weights, name);
  return std::make_unique<Dense>(spec, place, weights, name);
}

}  // namespace qkv
