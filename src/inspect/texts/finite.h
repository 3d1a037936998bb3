// Passes whose numbers are not finite are refused: nothing measured on them means anything.
//
// NaN and infinity reach the residual stream from wherever they begin (0 NaN = NaN), with exceptions: an infinite key
// can give a score of -inf, a key nobody sees; an infinite sink takes all attention; a NaN can lose the choice of
// experts. So the stream is checked, keys, log-sum-exp, the router's logits and what is added to them for the choice.
// What an activation makes finite again (the ReLU of -inf, a clamp) is not noticed.
#pragma once

#include <span>
#include <string>

#include "model/model.h"

namespace qkv {

// An Error that says where, which weight holds a number that is not finite, if one does, and what to do.
void check_finite(const Model& model, const std::string& where, std::span<const float> values);

// Checks the numbers of a pass and passes everything on to `inner`, which may be null.
//
// The host waits for a device at each check. Where a pass can be run again to say where it went wrong, its checks only add
// squares on the device: of what reaches the end of the stream, and of the exceptions. found() looks at them. What `inner`
// visits is checked before it sees it, so this is for passes of statistics and losses.
class FiniteProbe : public Probe {
 public:
  FiniteProbe(const Model& model, Probe* inner) : model_(model), inner_(inner) {}

  // From now on, until the arena is rewound. Not on the CPU, where looking costs nothing, nor for models with sinks.
  void only_find(Context& cx);
  bool found() const;  // whether a number was not finite

  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;
  StatsWanted stats_wanted(Place place) const override { return inner_->stats_wanted(place); }
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override;
  std::vector<int32_t> rows_wanted(Place place) const override { return inner_->rows_wanted(place); }
  void visit_importance(Context& cx, const Tap& tap, const Tensor& z_dz) override;

 private:
  void check(Context& cx, const Tap& tap, const Tensor& x) const;
  bool is_checked(Site site) const;
  Ask inner_ask(Place place, Site site) const { return inner_ == nullptr ? Ask::none : inner_->ask(place, site); }

  const Model& model_;
  Probe* inner_;
  Tensor squares_;  // their sum, where numbers are only to be found
};

// The logits of one row of states [N, C], or nothing without a head: they show every number of the head that is not finite.
Tensor logits_of_a_row(const Model& model, Context& cx, const Tensor& states);
void check_head(const Model& model, const Tensor& logits);  // those; waits for the device

}  // namespace qkv
