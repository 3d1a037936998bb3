#include "inspect/texts/finite.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/taps/taps.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

// All exponent bits are set in NaN and infinity. A plain loop that the compiler makes wide.
bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t largest = 0;
  for (const float x : values) largest = std::max(largest, std::bit_cast<uint32_t>(x) & kExponent);
  return largest != kExponent;
}

struct NotFinite {
  int64_t count = 0, first = -1;
  float value = 0;
};

NotFinite not_finite(std::span<const float> values) {
  NotFinite found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    if (found.count++ == 0) {
      found.first = static_cast<int64_t>(i);
      found.value = values[i];
    }
  }
  return found;
}

[[noreturn]] void fail_not_finite(const Model& model, const std::string& where, const NotFinite& found) {
  const std::string whose = model.origin.empty() ? "this " + model.spec().family : model.origin;
  bool blocks = false;
  for (const auto& [name, weight] : model.weights()) {
    if (!weight.format().plain()) {
      blocks = true;
      continue;
    }
    const NotFinite bad = not_finite(host_floats(weight.master()));
    if (bad.count == 0) continue;
    QKV_FAIL(whose, ": its weight '", name, "' ", weight.shape(), " holds ", bad.value, " at index ", bad.first, " (",
             bad.count, " of ", weight.shape().count(), " numbers are not finite), so ", where, " is ", found.value,
             Hint("the file is damaged or its training diverged: get it again, or take an earlier checkpoint"));
  }
  QKV_FAIL(whose, ": ", where, " is ", found.value, " though ",
           blocks ? "the weights that are not in blocks are finite" : "all weights are finite",
           Hint("a number grew beyond what its type holds: compute in f32,  --dtype f32"));
}

constexpr Ask kVisits = Ask::read | Ask::edit | Ask::rows | Ask::pattern;

}  // namespace

void check_finite(const Model& model, const std::string& where, std::span<const float> values) {
  if (!all_finite(values)) fail_not_finite(model, where, not_finite(values));
}

bool FiniteProbe::is_checked(Site site) const {
  switch (site) {
    case Site::attn_k:
    case Site::route_logits:
    case Site::final:
      return true;
    case Site::embed:
    case Site::attn_lse:
    case Site::resid_mid:
    case Site::resid_post:
      return !squares_.defined();  // the end of the stream shows it too
    default:
      return false;
  }
}

Ask FiniteProbe::ask(Place place, Site site) const {
  return inner_ask(place, site) | (is_checked(site) ? Ask::read : Ask::none);
}

void FiniteProbe::only_find(Context& cx) {
  if (&cx.arena.device() == &cpu_device()) return;
  for (const auto& [tap, name, shape] : all_taps(model_.spec())) {
    if (has(inner_ask(tap.place, tap.site), kVisits)) return;
    if (tap.site == Site::attn_lse && attention_at(model_.spec(), tap.place).sinks) return;  // only lse shows them
  }
  squares_ = cx.constant({1}, DType::f64);
  cx.kernels.fill(cx.exec, {.y = squares_, .value = 0});
}

// Squares of floats do not overflow in double.
bool FiniteProbe::found() const {
  if (!squares_.defined()) return false;
  double sum = 0;
  squares_.device().download(&sum, squares_.data(), size_of(DType::f64));
  return !std::isfinite(sum);
}

void FiniteProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  if (is_checked(tap.site)) check(cx, tap, x);
  if (has(inner_ask(tap.place, tap.site), kVisits)) inner_->visit(cx, tap, x);
}

void FiniteProbe::check(Context& cx, const Tap& tap, const Tensor& x) const {
  const ModelSpec& spec = model_.spec();
  int64_t bad = 1, first = -1;
  if (squares_.defined()) {
    cx.kernels.sum_squares(cx.exec, {.y = squares_, .x = x});
    bad = 0;
  } else if (&x.device() != &cpu_device()) {
    cx.kernels.nonfinite(cx.exec, {.x = x, .count = &bad, .first = &first});
  }
  if (bad > 0) {  // or the numbers are here anyway
    std::vector<float> values = host_floats(x);
    if (tap.site == Site::attn_lse) std::replace(values.begin(), values.end(), -INFINITY, 0.0F);  // a row without keys
    if (!all_finite(values)) fail_not_finite(model_, name_of(spec, {tap.place, tap.site}), not_finite(values));
  }
  if (tap.site != Site::route_logits) return;
  const std::string name = layer_prefix(spec, tap.place) + "mlp.router.correction";
  const Param* correction = model_.weights().find(name);
  if (correction == nullptr) return;
  for (const float added : host_floats(correction->master())) {
    if (!std::isnan(added)) continue;
    if (!squares_.defined()) fail_not_finite(model_, "the choice of experts", {.count = 1, .value = added});
    cx.kernels.fill(cx.exec, {.y = squares_, .value = NAN});
  }
}

void FiniteProbe::visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) {
  inner_->visit_stats(cx, tap, stats);
}

void FiniteProbe::visit_importance(Context& cx, const Tap& tap, const Tensor& z_dz) {
  check_finite(model_, "the gradient at " + name_of(model_.spec(), {tap.place, tap.site}), host_floats(z_dz));
  inner_->visit_importance(cx, tap, z_dz);
}

Tensor logits_of_a_row(const Model& model, Context& cx, const Tensor& states) {
  if (model.spec().vocabulary == 0) return {};
  Tape* const tape = std::exchange(cx.tape, nullptr);
  const Tensor logits = model.head().read_out(cx, states.slice(0, states.dim(0) - 1, 1));
  cx.tape = tape;
  return logits;
}

void check_head(const Model& model, const Tensor& logits) {
  if (!logits.defined()) return;
  const std::vector<float> values = host_floats(logits);
  if (all_finite(values)) return;
  const NotFinite found = not_finite(values);
  fail_not_finite(model, "the logit of token " + std::to_string(found.first), found);
}

}  // namespace qkv
