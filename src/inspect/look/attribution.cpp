#include "inspect/look/attribution.h"

#include <cmath>
#include <span>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/out_projection.h"
#include "inspect/taps/recorder.h"
#include "model/weight_list.h"
#include "ops/ops.h"

namespace qkv {
namespace {

using Vector = std::vector<double>;

Vector as_vector(std::span<const float> values) {
  return {values.begin(), values.end()};
}
void add_to(Vector& to, const Vector& more) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}
double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector weight(const Weights& weights, const std::string& name) {
  return as_vector(host_floats(weights.at(name).master()));
}

double mean(const Vector& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

// A norm with its scale fixed to that of `input`: a linear map and a bias.
class FrozenNorm {
 public:
  FrozenNorm(const NormSpec& spec, const Weights& weights, const std::string& name, const Vector& input)
      : centres_(spec.kind == NormSpec::Kind::layer), gain_(weight(weights, name)) {
    const double middle = centres_ ? mean(input) : 0;
    double power = 0;
    for (const double v : input) power += (v - middle) * (v - middle);
    const double scale = 1 / std::sqrt(power / static_cast<double>(input.size()) + spec.eps);
    for (double& g : gain_) g = (g + spec.offset) * scale;
    if (weights.find(name + ".bias") != nullptr) bias_ = weight(weights, name + ".bias");
  }

  void apply(Vector& part) const {
    const double middle = centres_ ? mean(part) : 0;
    for (size_t i = 0; i < part.size(); ++i) part[i] = (part[i] - middle) * gain_[i];
  }
  void add_bias(Vector& to) const {
    if (!bias_.empty()) add_to(to, bias_);
  }

 private:
  bool centres_;
  Vector gain_, bias_;
};

// All outputs added to the main stream, and the inputs of its norms.
std::vector<TapId> wanted_taps(const ModelSpec& spec) {
  std::vector<TapId> wanted;
  for (const TapInfo& tap : all_taps(spec)) {
    const bool other = spec.main() == Stack::decoder && tap.id.place.stack == Stack::encoder;
    switch (tap.id.site) {
      case Site::embed:
      case Site::resid_pre:
      case Site::resid_mid:
      case Site::resid_post:
      case Site::attn_z:
      case Site::attn_out:
      case Site::mlp_out:
      case Site::final:
        if (!other) wanted.push_back(tap.id);
        break;
      default:
        break;
    }
  }
  return wanted;
}

}  // namespace

// Splits one row of a finished pass into parts.
struct Attributor::Run {
  Attributor& to;
  Context& cx;
  const Recorder& seen;
  int64_t row;
  Vector biases;

  const ModelSpec& spec() const { return to.model_.spec(); }
  const Weights& weights() const { return to.model_.weights(); }
  Vector at(Place place, Site site) const { return as_vector(seen.last({place, site}).row(row)); }

  // rows W' in the precision of the pass.
  std::vector<Vector> product(const std::vector<Vector>& rows, const Param& w) const {
    std::vector<float> flat;
    for (const Vector& r : rows) flat.insert(flat.end(), r.begin(), r.end());
    const Shape shape{std::ssize(rows), std::ssize(rows.front())};
    const Tensor y = ops::linear(cx, as_operand(cx, cx.upload(flat, shape)), w, {.out = cx.precision.exact});
    const std::vector<float> got = host_floats(y);
    std::vector<Vector> out;
    const auto width = static_cast<size_t>(y.cols());
    for (size_t r = 0; r < rows.size(); ++r) out.push_back(as_vector(std::span(got).subspan(r * width, width)));
    return out;
  }

  void on_all(const FrozenNorm& norm) {
    for (Part& part : to.parts_) norm.apply(part.writes);
    norm.apply(biases);
    norm.add_bias(biases);
  }

  // Adds the parts of one branch, through its norm if it has one, then applies a norm on the stream.
  void branch(std::vector<Part> parts, Vector bias, const LayerSpec& layer, const std::string& norm_name, Vector wrote,
              const Vector& stream) {
    if (layer.place == NormPlace::branch || layer.place == NormPlace::around) {
      const FrozenNorm norm(layer.norm, weights(), norm_name + "_out", wrote);
      for (Part& part : parts) norm.apply(part.writes);
      norm.apply(bias);
      norm.add_bias(bias);
    }
    const auto scaled = [&](Vector& x) {
      for (double& v : x) v *= layer.branch_factor;
    };
    for (Part& part : parts) scaled(part.writes);
    scaled(bias);
    scaled(wrote);
    for (Part& part : parts) to.parts_.push_back(std::move(part));
    add_to(biases, bias);
    if (layer.place != NormPlace::after) return;
    to.linearised_ = true;
    add_to(wrote, stream);
    on_all(FrozenNorm(layer.norm, weights(), norm_name, wrote));
  }

  void attention(Place place, const LayerSpec& layer, const std::string& prefix) {
    const OutProjection out(spec(), place);
    std::vector<Part> parts;
    if (out.heads() > 0) {
      const std::vector<Vector> wrote = product(out.one_head_each(at(place, Site::attn_z)), weights().at(out.weight()));
      for (size_t h = 0; h < wrote.size(); ++h) {
        const HeadId head{place.stack, place.layer, static_cast<int16_t>(h)};
        parts.push_back({AttributedPart::Kind::head, name_of(spec(), head), wrote[h]});
      }
    }
    Vector bias(static_cast<size_t>(spec().width), 0.0);
    if (attention_at(spec(), place).out_bias) bias = weight(weights(), out.bias());
    branch(std::move(parts), std::move(bias), layer,
           prefix + (place.stack == Stack::cross ? "norm_cross" : "norm_attn"), at(place, Site::attn_out),
           at(place, Site::resid_pre));
  }

  void feed(Place place, const LayerSpec& layer, const std::string& prefix) {
    const Vector wrote = at(place, Site::mlp_out);
    branch({{AttributedPart::Kind::feed, name_of(spec(), place) + " mlp", wrote}},
           Vector(static_cast<size_t>(spec().width), 0.0), layer, prefix + "norm_mlp", wrote,
           at(place, Site::resid_mid));
  }

  void stack() {
    const Stack which = spec().main();
    const StackSpec& s = spec().main_stack();
    biases.assign(static_cast<size_t>(spec().width), 0.0);
    to.parts_.push_back({AttributedPart::Kind::embed, "embed", at({which, 0}, Site::embed)});
    const std::string of_stack = stack_prefix(spec(), which);
    Place place{which, 0};
    for (size_t i = 0; i < s.layers.size(); ++i) {
      place.layer = static_cast<int16_t>(i);
      const std::string prefix = layer_prefix(spec(), place);
      attention(place, s.layers[i], prefix);
      if (s.layers[i].cross) attention({Stack::cross, place.layer}, s.layers[i], prefix);
      if (!s.layers[i].feed.absent()) feed(place, s.layers[i], prefix);
    }
    if (s.final_norm) {
      on_all(FrozenNorm(spec().norm, weights(), of_stack + "norm_final", at(place, Site::resid_post)));
    }
  }

  // BERT: dense, activation, norm. Each activation becomes the factor act(x) / x.
  void transform(const Vector& states) {
    to.linearised_ = true;
    std::vector<Vector> all;
    for (const Part& part : to.parts_) all.push_back(part.writes);
    all.push_back(biases);
    all.push_back(states);
    all = product(all, weights().at("head.dense"));
    const Vector bias = spec().head.transform_bias ? weight(weights(), "head.dense.bias")
                                                   : Vector(static_cast<size_t>(spec().width), 0.0);
    add_to(all[all.size() - 2], bias);
    Vector whole = all.back();
    add_to(whole, bias);
    const std::vector<float> before(whole.begin(), whole.end());
    const Vector after =
        as_vector(host_floats(ops::activation(cx, cx.upload(before, {1, std::ssize(before)}), spec().head.act)));
    const auto kept = [&](Vector x) {
      for (size_t i = 0; i < x.size(); ++i) x[i] *= whole[i] != 0 ? after[i] / whole[i] : 0;
      return x;
    };
    for (size_t i = 0; i < to.parts_.size(); ++i) to.parts_[i].writes = kept(all[i]);
    biases = kept(all[to.parts_.size()]);
    on_all(FrozenNorm(spec().norm, weights(), "head.norm", after));
  }

  void head() {
    const TapId last{{spec().main(), 0}, Site::final};
    const std::vector<float> states(seen.last(last).row(row).begin(), seen.last(last).row(row).end());
    if (spec().head.transform) transform(as_vector(states));
    to.parts_.push_back({AttributedPart::Kind::biases, "biases", biases});
    for (Part& part : to.parts_) {
      for (double& v : part.writes) v *= spec().head.factor;
    }
    const Head& head = to.model_.head();
    const Tensor in = head.before_logits(cx, cx.upload(states, {1, std::ssize(states)}));
    to.logits_ = host_floats(ops::linear(cx, in, head.weight(), {.bias = head.bias(), .out = cx.precision.exact}));
  }
};

Attributor::Attributor(const Model& model, const Engine& engine, Precision precision, const TokenText& text,
                       int64_t row)
    : model_(model), engine_(engine), precision_(precision) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(spec.vocabulary > 0, "a ", spec.family, " without a vocabulary has no logits to attribute",
            Hint("take a model with a head"));
  QKV_CHECK(row >= 0 && row < std::ssize(text.ids), "no token ", row, ": the text has ", text.ids.size(),
            " tokens, 0 to ", std::ssize(text.ids) - 1, Hint("tokens are counted from 0"));
  Recorder seen(wanted_taps(spec));
  // In one pass, so that a row of the pass is a row of the text.
  Reader(model, engine, {.precision = precision, .rows = std::ssize(text.ids)}).look({&text, 1}, seen);
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  Run run{.to = *this, .cx = cx, .seen = seen, .row = row, .biases = {}};
  run.stack();
  run.head();
}

Attribution Attributor::of(int32_t target, int32_t against) const {
  const int64_t vocabulary = model_.spec().vocabulary;
  for (const int32_t id : {target, against}) {
    QKV_CHECK(id >= 0 && id < vocabulary, "no token id ", id, ": the vocabulary has ", vocabulary,
              Hint("ids are counted from 0"));
  }
  Arena arena(engine_.device());
  Context cx = engine_.context(arena, precision_);
  const Head& head = model_.head();
  const std::vector<int32_t> both{target, against};
  const std::vector<float> said =
      host_floats(ops::embedding(cx, {{.ids = cx.upload(both), .table = &head.weight()}}));  // rows of W_U
  const auto width = said.size() / 2;
  Vector direction(width);
  for (size_t i = 0; i < width; ++i) direction[i] = static_cast<double>(said[i]) - static_cast<double>(said[width + i]);
  Attribution made;
  for (const Part& part : parts_) {
    made.parts.push_back({part.kind, part.name, dot(part.writes, direction)});
  }
  const auto at = [](const std::vector<float>& all, int32_t id) {
    return static_cast<double>(all[static_cast<size_t>(id)]);
  };
  if (head.bias() != nullptr) {
    const std::vector<float> bias = host_floats(head.bias()->master());
    made.parts.back().share += at(bias, target) - at(bias, against);
  }
  for (const AttributedPart& part : made.parts) made.sum += part.share;
  made.difference = at(logits_, target) - at(logits_, against);
  return made;
}

}  // namespace qkv
