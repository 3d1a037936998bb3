#include "inspect/heads/role_sums.h"

#include <algorithm>

namespace qkv {

void RoleSums::finish(std::span<HeadScore> heads, uint64_t seed) const {
  std::vector<TextSum> rows(heads_ * groups_);
  const auto take = [&](const std::vector<TextSum>& all, size_t measure, auto member) {
    bool any = false;
    for (size_t h = 0; h < heads_; ++h) {
      for (size_t g = 0; g < groups_; ++g) {
        rows[h * groups_ + g] = all[(g * heads_ + h) * kMeasures + measure];
        any |= rows[h * groups_ + g].count > 0;
      }
    }
    if (!any) return;
    const std::vector<Estimate> made = estimates(rows, groups_, seed, quantity_of(static_cast<Measure>(measure)));
    for (size_t h = 0; h < heads_; ++h) (heads[h].*member)[measure] = made[h];
  };
  for (size_t m = 0; m < kMeasures; ++m) {
    take(sums_, m, &HeadScore::values);
    take(value_weighted_, m, &HeadScore::value_weighted);
    for (size_t h = 0; h < heads_; ++h) {
      const TextSum& one = chance_[h * kMeasures + m];
      if (one.count > 0) heads[h].chance[m] = one.sum / static_cast<double>(one.count);
    }
  }
}

}  // namespace qkv
