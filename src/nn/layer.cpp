#include "nn/layer.h"

#include "ops/dropout.h"

namespace qkv {
namespace {

// A sublayer f on the residual stream x: attention, cross attention or the feed-forward, with norms and dropout.
class Sublayer {
 public:
  // f(h), computed when it is used: alone, or as x + f(h), where f's last product adds to x itself.
  struct Branch {
    const Pass& pass;
    Tensor h;
  };

  // `name`: of the norm before f or after the sum. The norm of f's output is `name`_out. `stream`: what taps call x.
  Sublayer(const LayerSpec& spec, const ops::DropoutOptions& dropout, Site stream, const Weights& weights,
           const std::string& name)
      : place_(spec.place), factor_(spec.branch_factor), dropout_(dropout), stream_(stream) {
    if (weights.find(name) != nullptr) norm_.emplace(spec.norm, weights, name);
    if (weights.find(name + "_out") != nullptr) norm_out_.emplace(spec.norm, weights, name + "_out");
  }
  virtual ~Sublayer() = default;

  // The stream after this sublayer.
  Tensor forward(Context& cx, const Tensor& x, const Pass& pass) const {
    const auto f = [&](const Tensor& h) { return branch(cx, h, pass); };
    const auto norm = [&](const Tensor& t) { return this->norm(cx, t); };
    const auto norm_sum = [&](const Tensor& t) { return norm_->forward(cx, t, cx.precision.exact); };
    const auto norm_out = [&](const Branch& b) { return norm_out_->forward(cx, compute(cx, b)); };
    const auto add = [&](const Tensor& a, const auto& b) { return this->add(cx, a, b); };
    switch (place_) {
      case NormPlace::before:  // GPT-2, Llama
        return add(x, f(norm(x)));
      case NormPlace::after:  // the 2017 Transformer, BERT
        return norm_sum(add(x, f(x)));
      case NormPlace::branch:  // OLMo 2
        return add(x, norm_out(f(x)));
      case NormPlace::around:  // Gemma
        return add(x, norm_out(f(norm(x))));
      case NormPlace::parallel:
      case NormPlace::shared:
        break;
    }
    QKV_ASSERT(false, "a parallel layer adds its branches itself");
  }

  // The parts of it, for a parallel layer.
  Tensor norm(Context& cx, const Tensor& x) const { return norm_ ? norm_->forward(cx, x) : x; }
  Branch branch(Context& cx, const Tensor& h, const Pass& pass) const {
    return {pass, as_operand(cx, h)};  // cast once for all products that read h
  }
  // x + dropout(f(h)). Without a factor, and without dropout or with kernels that do it, the sum is fused into f.
  Tensor add(Context& cx, const Tensor& x, const Branch& b) const {
    const ops::Residual sum = residual(cx, x);
    const bool fits = factor_ == 1 && (sum.dropout.p == 0 || cx.kernels.drops_sums);
    return fits ? fused(cx, b.h, b.pass, sum) : add(cx, x, compute(cx, b));
  }

 protected:
  // f(h), or residual + f(h).
  virtual Tensor fused(Context& cx, const Tensor& h, const Pass& pass, const ops::Residual& residual) const = 0;

 private:
  Tensor compute(Context& cx, const Branch& b) const { return fused(cx, b.h, b.pass, {}); }
  Tensor add(Context& cx, const Tensor& x, const Tensor& y) const {  // x + factor dropout(y)
    ops::Residual sum = residual(cx, x);
    if (factor_ == 1) return ops::add_residual(cx, sum, y);
    sum.dropout = {};
    return ops::add_residual(cx, sum, ops::scale(cx, ops::dropout(cx, y, dropout_), factor_));
  }
  // What is added is dropped first. The sum overwrites x unless a tape needs x or a probe has seen it.
  ops::Residual residual(const Context& cx, const Tensor& x) const {
    return {.x = x,
            .in_place = cx.tape == nullptr && !cx.watched(dropout_.place, stream_),
            .dropout = ops::dropout_of(cx, dropout_)};
  }

  NormPlace place_;
  double factor_;
  ops::DropoutOptions dropout_;
  Site stream_;
  std::optional<Norm> norm_, norm_out_;
};

class SelfAttention : public Sublayer {
 public:
  SelfAttention(const LayerSpec& spec, Place place, const Weights& weights, const Attention::Names& names, Ropes& ropes)
      : Sublayer(spec, {spec.dropout, place, Site::attn_out}, Site::resid_pre, weights, names.name + "norm_attn"),
        attention_(spec.attention, place, weights, {names.name + "attn", names.relative}, ropes) {}

 private:
  Tensor fused(Context& cx, const Tensor& h, const Pass& pass, const ops::Residual& residual) const override {
    return attention_.forward(cx, h, {pass.rows, pass.past, residual});
  }

  Attention attention_;
};

class CrossAttention : public Sublayer {
 public:
  CrossAttention(const LayerSpec& spec, Place place, const Weights& weights, const std::string& prefix, Ropes& ropes)
      : Sublayer(spec, {spec.dropout, place, Site::attn_out}, Site::resid_pre, weights, prefix + "norm_cross"),
        attention_(*spec.cross, place, weights, {prefix + "cross", ""}, ropes) {}

  void cache_source(Context& cx, const Tensor& states, const KvPages& pages) const {
    attention_.cache_source(cx, states, pages);
  }

 private:
  Tensor fused(Context& cx, const Tensor& h, const Pass& pass, const ops::Residual& residual) const override {
    const Memory& memory = *pass.memory;
    return memory.pages != nullptr ? attention_.forward_cross(cx, h, *memory.pages, residual)
                                   : attention_.forward_cross(cx, h, memory.states, {memory.rows, nullptr, residual});
  }

  Attention attention_;
};

class FeedForwardSublayer : public Sublayer {
 public:
  FeedForwardSublayer(const LayerSpec& spec, Place place, const Weights& weights, const std::string& prefix)
      : Sublayer(spec, {spec.dropout, place, Site::mlp_out}, Site::resid_mid, weights, prefix + "norm_mlp"),
        feed_(FeedForward::make(spec.feed, place, weights, prefix + "mlp")) {}

 private:
  Tensor fused(Context& cx, const Tensor& h, const Pass& pass, const ops::Residual& residual) const override {
    return feed_->forward(cx, h, pass.rows, residual);
  }

  std::unique_ptr<FeedForward> feed_;
};

// x = x + attention(norm(x)),  x = x + feed(norm(x)),  with the norms where the spec says. A layer may have no feed.
class SequentialLayer : public Layer {
 public:
  SequentialLayer(const LayerSpec& spec, Place place, const Weights& weights, const Attention::Names& names,
                  Ropes& ropes)
      : place_(place), cross_place_{Stack::cross, place.layer}, attention_(spec, place, weights, names, ropes) {
    if (!spec.feed.absent()) feed_.emplace(spec, place, weights, names.name);
    if (spec.cross) cross_.emplace(spec, cross_place_, weights, names.name, ropes);
  }

  Tensor forward(Context& cx, Tensor x, const Pass& pass) const override {
    cx.tap(place_, Site::resid_pre, x, &pass.rows);
    x = attention_.forward(cx, x, pass);
    if (cross_) {
      cx.tap(cross_place_, Site::resid_pre, x, &pass.rows);
      x = cross_->forward(cx, x, pass);
    }
    cx.tap(place_, Site::resid_mid, x, &pass.rows);
    if (feed_) x = feed_->forward(cx, x, pass);
    cx.tap(place_, Site::resid_post, x, &pass.rows);
    return x;
  }

  void cache_source(Context& cx, const Tensor& states, const KvPages& pages) const override {
    if (cross_) cross_->cache_source(cx, states, pages);
  }

 private:
  Place place_, cross_place_;
  SelfAttention attention_;
  std::optional<CrossAttention> cross_;
  std::optional<FeedForwardSublayer> feed_;
};

// x = x + attention(norm1(x)) + feed(norm2(x)),  both of the same x: GPT-NeoX. With one norm for both: GPT-J.
class ParallelLayer : public Layer {
 public:
  ParallelLayer(const LayerSpec& spec, Place place, const Weights& weights, const Attention::Names& names, Ropes& ropes)
      : place_(place),
        shared_(spec.place == NormPlace::shared),
        attention_(spec, place, weights, names, ropes),
        feed_(spec, place, weights, names.name) {}

  Tensor forward(Context& cx, Tensor x, const Pass& pass) const override {
    cx.tap(place_, Site::resid_pre, x, &pass.rows);
    // Both norms before the first sum, which may overwrite x.
    const Tensor feed_input = shared_ ? Tensor() : feed_.norm(cx, x), attention_input = attention_.norm(cx, x);
    const Sublayer::Branch feed = feed_.branch(cx, shared_ ? attention_input : feed_input, pass);
    const Sublayer::Branch attention = attention_.branch(cx, attention_input, pass);
    x = attention_.add(cx, x, attention);
    cx.tap(place_, Site::resid_mid, x, &pass.rows);
    x = feed_.add(cx, x, feed);
    cx.tap(place_, Site::resid_post, x, &pass.rows);
    return x;
  }

  void cache_source(Context&, const Tensor&, const KvPages&) const override {}  // no cross attention

 private:
  Place place_;
  bool shared_;
  SelfAttention attention_;
  FeedForwardSublayer feed_;
};

}  // namespace

std::unique_ptr<Layer> Layer::make(const LayerSpec& spec, Place place, const Weights& weights,
                                   const Attention::Names& names, Ropes& ropes) {
  if (spec.place == NormPlace::parallel || spec.place == NormPlace::shared) {
    return std::make_unique<ParallelLayer>(spec, place, weights, names, ropes);
  }
  return std::make_unique<SequentialLayer>(spec, place, weights, names, ropes);
}

}  // namespace qkv
