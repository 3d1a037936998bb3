// Sums of every measure per head and text, and the estimates computed from them.
#pragma once

#include "inspect/heads/head_roles.h"

namespace qkv {

class RoleSums {
 public:
  // Further texts share a sum: so many groups are enough for an interval, and memory stays bounded.
  static constexpr size_t kMostGroups = 256;

  RoleSums(size_t heads, size_t texts)
      : heads_(heads),
        groups_(std::min(texts, kMostGroups)),
        sums_(heads * groups_ * kMeasures),
        value_weighted_(sums_.size()),
        chance_(heads * kMeasures) {}

  // All measures of one head in one text.
  std::span<TextSum, kMeasures> of(size_t head, int32_t text) { return part(sums_, head, text); }
  std::span<TextSum, kMeasures> value_weighted(size_t head, int32_t text) { return part(value_weighted_, head, text); }
  // Scores of uniform attention.
  std::span<TextSum, kMeasures> chance(size_t head) {
    return std::span<TextSum, kMeasures>(chance_.data() + head * kMeasures, kMeasures);
  }

  void finish(std::span<HeadScore> heads, uint64_t seed) const;

 private:
  std::span<TextSum, kMeasures> part(std::vector<TextSum>& all, size_t head, int32_t text) {
    const size_t group = static_cast<size_t>(text) % groups_;
    return std::span<TextSum, kMeasures>(all.data() + (group * heads_ + head) * kMeasures, kMeasures);
  }

  size_t heads_, groups_;
  std::vector<TextSum> sums_, value_weighted_, chance_;
};

}  // namespace qkv
