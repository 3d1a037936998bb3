// What heads write, without writing it: lengths of v W_O and z W_O of single heads, and how far they raise a logit.
#pragma once

#include <span>
#include <vector>

#include "inspect/heads/out_projection.h"
#include "model/model.h"

namespace qkv {

// One attention's W_O, head by head. A norm on the branch is part of it but for its scale, which changes from row to
// row (`scale_of`).
class HeadWrites {
 public:
  HeadWrites(Context& cx, const Model& model, Place place);

  Place place() const { return place_; }

  // |x W_O^h| of x [rows, groups, E], groups being heads or key/value heads: one number for each row and query head.
  std::vector<float> lengths(Context& cx, std::span<const float> x, int64_t groups) const;

  // 1 / rms of a row of attn.out where its branch has a norm, otherwise 1.
  bool has_norm() const { return norm_eps_ >= 0; }
  double scale_of(std::span<const float> out) const;

  // W_O as floats [C, H E], the norm's weight multiplied in. Not kept: it is as large as the weight.
  std::vector<float> matrix(Context& cx) const;

  const OutProjection& out() const { return out_; }

 private:
  const Model& model_;
  Place place_;
  AttentionSpec spec_;
  OutProjection out_;
  std::vector<float> gain_;  // of the branch's norm; empty: none
  double norm_eps_ = -1;
  std::vector<float> squares_;  // [H, E, E]: W_O^h' W_O^h
};

// The direction each token's logit rises in, less that of the mean token: folded with the last norm's weight, for
// streams divided by that norm's scale.
class LogitDirections {
 public:
  LogitDirections(Context& cx, const Model& model);
  std::vector<float> of(Context& cx, std::span<const int32_t> tokens) const;  // [tokens, C]
  double scale_of(std::span<const float> stream) const;                       // 1 / sigma of the last norm

  // Whether what a head writes reaches the logits through nothing but the last norm; otherwise why not.
  static std::string why_not(const ModelSpec& spec);

 private:
  const Model& model_;
  std::vector<float> gain_, mean_;
};

// A weight of any format as floats, row by row.
std::vector<float> weight_rows(Context& cx, const Param& weight, std::span<const int32_t> rows);

}  // namespace qkv
