#include "nn/layer.h"

#include "base/function_ref.h"

namespace qkv {
namespace {

// What a branch makes of its input: alone, or added to what it is given.
using Branch = FunctionRef<Tensor(const Tensor&, const ops::Onto&)>;

// The stream and one branch of it. Norms named NAME stand before (or after the sum), NAME_out on what the branch
// brings.
class Residual {
 public:
  explicit Residual(const ops::DropoutOptions& dropout) : dropout_(dropout) {}
  virtual ~Residual() = default;
  virtual Tensor forward(Context& cx, const Tensor& x, Branch f) const = 0;

 protected:
  // x and what f brings of h. The last product of f adds to x itself where nothing comes between.
  Tensor joined(Context& cx, const Tensor& x, const Tensor& h, Branch f) const {
    if (cx.training && dropout_.p > 0) return joined(cx, x, f(h, {}));
    return f(h, onto(cx, x));
  }
  // x and what its branch brought.
  Tensor joined(Context& cx, const Tensor& x, const Tensor& brought) const {
    return ops::add_onto(cx, onto(cx, x), ops::dropout(cx, brought, dropout_));
  }

 private:
  // Where no tape keeps the stream and nobody looks at it, the sum takes its place.
  static ops::Onto onto(const Context& cx, const Tensor& x) {
    return {.x = x, .in_place = cx.tape == nullptr && cx.probe == nullptr};
  }

  ops::DropoutOptions dropout_;
};

class NormBefore : public Residual {
 public:
  NormBefore(const ops::DropoutOptions& dropout, Norm norm) : Residual(dropout), norm_(norm) {}
  Tensor forward(Context& cx, const Tensor& x, Branch f) const override {
    return joined(cx, x, norm_.forward(cx, x), f);
  }

 private:
  Norm norm_;
};

class NormAfter : public Residual {
 public:
  NormAfter(const ops::DropoutOptions& dropout, Norm norm) : Residual(dropout), norm_(norm) {}
  Tensor forward(Context& cx, const Tensor& x, Branch f) const override {
    return norm_.forward(cx, joined(cx, x, as_operand(cx, x), f), cx.precision.exact);
  }

 private:
  Norm norm_;
};

class NormOnBranch : public Residual {
 public:
  NormOnBranch(const ops::DropoutOptions& dropout, Norm norm) : Residual(dropout), norm_(norm) {}
  Tensor forward(Context& cx, const Tensor& x, Branch f) const override {
    return joined(cx, x, norm_.forward(cx, f(as_operand(cx, x), {})));
  }

 private:
  Norm norm_;
};

class NormAround : public Residual {
 public:
  NormAround(const ops::DropoutOptions& dropout, Norm before, Norm after)
      : Residual(dropout), before_(before), after_(after) {}
  Tensor forward(Context& cx, const Tensor& x, Branch f) const override {
    return joined(cx, x, after_.forward(cx, f(before_.forward(cx, x), {})));
  }

 private:
  Norm before_, after_;
};

// Without a norm of its own: parallel branches have theirs before they part.
class Bare : public Residual {
 public:
  using Residual::Residual;
  Tensor forward(Context& cx, const Tensor& x, Branch f) const override { return joined(cx, x, x, f); }
};

std::unique_ptr<Residual> residual_of(const LayerSpec& spec, const ops::DropoutOptions& dropout, const Weights& weights,
                                      const std::string& name) {
  const auto norm = [&](const std::string& which) { return Norm(spec.norm, weights, which); };
  switch (spec.place) {
    case NormPlace::before:
      return std::make_unique<NormBefore>(dropout, norm(name));
    case NormPlace::after:
      return std::make_unique<NormAfter>(dropout, norm(name));
    case NormPlace::branch:
      return std::make_unique<NormOnBranch>(dropout, norm(name + "_out"));
    case NormPlace::around:
      return std::make_unique<NormAround>(dropout, norm(name), norm(name + "_out"));
    case NormPlace::parallel:
      break;
  }
  return std::make_unique<Bare>(dropout);
}

class SequentialLayer : public Layer {
 public:
  SequentialLayer(const LayerSpec& spec, Place place, const Weights& weights, const Attention::Names& names,
                  Ropes& ropes)
      : place_(place),
        attention_(spec.attention, place, weights, {names.name + "attn", names.relative}, ropes),
        feed_(FeedForward::make(spec.feed, place, weights, names.name + "mlp")),
        around_attention_(residual_of(spec, ops::DropoutOptions{spec.dropout, place, Site::attn_out}, weights,
                                      names.name + "norm_attn")),
        around_feed_(residual_of(spec, ops::DropoutOptions{spec.dropout, place, Site::mlp_out}, weights,
                                 names.name + "norm_mlp")) {
    if (spec.cross) {
      const Place across{Stack::cross, place.layer};
      cross_.emplace(*spec.cross, across, weights, Attention::Names{names.name + "cross", ""}, ropes);
      around_cross_ = residual_of(spec, ops::DropoutOptions{spec.dropout, across, Site::attn_out}, weights,
                                  names.name + "norm_cross");
    }
  }

  Tensor forward(Context& cx, Tensor x, const Pass& pass) const override {
    const Rows& rows = pass.rows;
    cx.tap(place_, Site::resid_pre, x, &rows);
    x = around_attention_->forward(cx, x, [&](const Tensor& h, const ops::Onto& onto) {
      return attention_.forward(cx, h, {rows, pass.past, onto});
    });
    if (cross_) {
      cx.tap({Stack::cross, place_.layer}, Site::resid_pre, x, &rows);
      x = around_cross_->forward(
          cx, x, [&](const Tensor& h, const ops::Onto& onto) { return across(cx, h, *pass.memory, onto); });
    }
    cx.tap(place_, Site::resid_mid, x, &rows);
    x = around_feed_->forward(
        cx, x, [&](const Tensor& h, const ops::Onto& onto) { return feed_->forward(cx, h, rows, onto); });
    cx.tap(place_, Site::resid_post, x, &rows);
    return x;
  }

  void remember(Context& cx, const Tensor& states, const KvPages& pages) const override {
    if (cross_) cross_->remember(cx, states, pages);
  }

 private:
  Tensor across(Context& cx, const Tensor& h, const Memory& memory, const ops::Onto& onto) const {
    return memory.pages != nullptr ? cross_->forward_across(cx, h, *memory.pages, onto)
                                   : cross_->forward_across(cx, h, memory.states, {.rows = memory.rows, .onto = onto});
  }

  Place place_;
  Attention attention_;
  std::optional<Attention> cross_;
  std::unique_ptr<FeedForward> feed_;
  std::unique_ptr<Residual> around_attention_, around_cross_, around_feed_;
};

class ParallelLayer : public Layer {
 public:
  ParallelLayer(const LayerSpec& spec, Place place, const Weights& weights, const Attention::Names& names, Ropes& ropes)
      : place_(place),
        attention_(spec.attention, place, weights, {names.name + "attn", names.relative}, ropes),
        feed_(FeedForward::make(spec.feed, place, weights, names.name + "mlp")),
        norm_attention_(spec.norm, weights, names.name + "norm_attn"),
        norm_feed_(spec.norm, weights, names.name + "norm_mlp"),
        after_attention_({spec.dropout, place, Site::attn_out}),
        after_feed_({spec.dropout, place, Site::mlp_out}) {}

  Tensor forward(Context& cx, Tensor x, const Pass& pass) const override {
    const Rows& rows = pass.rows;
    cx.tap(place_, Site::resid_pre, x, &rows);
    const Tensor h = norm_feed_.forward(cx, x);  // of the stream before attention
    x = after_attention_.forward(cx, x, [&](const Tensor& in, const ops::Onto& onto) {
      return attention_.forward(cx, norm_attention_.forward(cx, in), {rows, pass.past, onto});
    });
    cx.tap(place_, Site::resid_mid, x, &rows);
    x = after_feed_.forward(cx, x,
                            [&](const Tensor&, const ops::Onto& onto) { return feed_->forward(cx, h, rows, onto); });
    cx.tap(place_, Site::resid_post, x, &rows);
    return x;
  }

  void remember(Context&, const Tensor&, const KvPages&) const override {}

 private:
  Place place_;
  Attention attention_;
  std::unique_ptr<FeedForward> feed_;
  Norm norm_attention_, norm_feed_;
  Bare after_attention_, after_feed_;
};

}  // namespace

std::unique_ptr<Layer> Layer::make(const LayerSpec& spec, Place place, const Weights& weights,
                                   const Attention::Names& names, Ropes& ropes) {
  if (spec.place == NormPlace::parallel) return std::make_unique<ParallelLayer>(spec, place, weights, names, ropes);
  return std::make_unique<SequentialLayer>(spec, place, weights, names, ropes);
}

}  // namespace qkv
