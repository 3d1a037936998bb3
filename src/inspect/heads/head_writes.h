// Output of single heads: norms of v W_O and z W_O, and their contribution to a logit.
#pragma once

#include <span>
#include <vector>

#include "inspect/heads/out_projection.h"
#include "model/model.h"

namespace qkv {

// W_O of one attention, split by heads. If the branch ends in a norm, its weight is folded in; its scale changes from
// row to row (`scale_of`).
class HeadWrites {
 public:
  HeadWrites(Context& cx, const Model& model, Place place);

  Place place() const { return place_; }

  // |x W_O^h| for x [rows, groups, E], groups being heads or key/value heads. Returns [rows, heads].
  std::vector<float> lengths(Context& cx, std::span<const float> x, int64_t groups) const;

  // 1 / rms of a row of attn.out if the branch has a norm, else 1.
  bool has_norm() const { return norm_eps_ >= 0; }
  double scale_of(std::span<const float> out) const;

  // W_O as floats [C, H E], times the norm's weight. Not cached: it is as large as the weight.
  std::vector<float> matrix(Context& cx) const;

  const OutProjection& out() const { return out_; }

 private:
  const Model& model_;
  Place place_;
  AttentionSpec spec_;
  OutProjection out_;
  std::vector<float> gain_;  // weight of the branch's norm; empty: none
  double norm_eps_ = -1;
  std::vector<float> squares_;  // [H, E, E]: W_O^h' W_O^h
};

// Gradient of a token's logit minus the mean logit with respect to the normalised residual stream: rows of W_U minus
// their mean, times the final norm's weight.
class LogitDirections {
 public:
  LogitDirections(Context& cx, const Model& model);
  std::vector<float> of(Context& cx, std::span<const int32_t> tokens) const;  // [tokens, C]
  double scale_of(std::span<const float> stream) const;                       // 1 / sigma of the final norm

  // Empty if a head's output reaches the logits through the final norm only; otherwise the reason why not.
  static std::string why_not(const ModelSpec& spec);

 private:
  const Model& model_;
  std::vector<float> gain_, mean_;
};

// Rows of a weight of any format as floats.
std::vector<float> weight_rows(Context& cx, const Param& weight, std::span<const int32_t> rows);

}  // namespace qkv
