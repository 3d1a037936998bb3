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
    Tensor pre = gate_ ? gate_->forward(cx, x) : up_.forward(cx, x);  // [N, F]
    cx.tap(place_, Site::mlp_pre, pre, &rows);
    Tensor post = gate_ ? ops::gated(cx, pre, up_.forward(cx, x), spec_.gating()) : ops::activation(cx, pre, spec_.act);
    post = ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
    cx.tap(place_, Site::mlp_post, post, &rows);
    Tensor out = down_.forward_to_stream(cx, post);
    cx.tap(place_, Site::mlp_out, out, &rows);
    return out;
  }

 private:
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
    Tensor post = ops::gated(cx, gate_.forward(cx, sorted, plan.groups), up_.forward(cx, sorted, plan.groups),
                             spec_.gating());  // [N k, F]
    post = ops::dropout(cx, post, {.p = spec_.dropout, .place = place_, .site = Site::mlp_post});
    const Tensor brought = down_.forward_to_stream(cx, post, plan.groups);
    Tensor out = ops::combine(cx, brought, chosen.weights, plan);  // [N, C]
    if (shared_) out = ops::add(cx, out, shared_->forward(cx, x, rows));
    cx.tap(place_, Site::mlp_out, out, &rows);
    return out;
  }

 private:
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
