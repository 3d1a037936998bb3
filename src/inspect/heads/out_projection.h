// W_O of one attention, split by heads: out = sum_h W_O^h z_h + bias.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "inspect/heads/head_id.h"

namespace qkv {

// W_O is [C, H E]; columns h E to (h + 1) E are W_O^h [C, E] and multiply z_h.
class OutProjection {
 public:
  OutProjection(const ModelSpec& spec, Place place);

  const std::string& weight() const { return weight_; }  // names of the weights
  std::string bias() const { return weight_ + ".bias"; }
  int64_t heads() const { return heads_; }
  int64_t value_width() const { return width_; }       // E
  int64_t columns() const { return heads_ * width_; }  // H E

  // The E numbers of one head in H E numbers: in row `row` of W_O, or of z.
  std::span<const float> of_head(std::span<const float> values, int64_t row, int64_t head) const {
    return values.subspan(static_cast<size_t>(row * columns() + head * width_), static_cast<size_t>(width_));
  }

  // z of one token [H E] as H rows, each with one head's numbers and zeros elsewhere: their products with W_O are what
  // the heads write.
  std::vector<std::vector<double>> one_head_each(std::span<const double> z) const;

 private:
  std::string weight_;
  int64_t heads_, width_;
};

}  // namespace qkv
