#include "inspect/heads/out_projection.h"

#include <algorithm>

#include "model/weight_list.h"

namespace qkv {

OutProjection::OutProjection(const ModelSpec& spec, Place place)
    : weight_(attention_prefix(spec, place) + ".o"),
      heads_(attention_at(spec, place).heads),
      width_(attention_at(spec, place).value_width) {}

std::vector<std::vector<double>> OutProjection::one_head_each(std::span<const double> z) const {
  std::vector<std::vector<double>> rows(static_cast<size_t>(heads_), std::vector<double>(z.size(), 0.0));
  const auto width = static_cast<size_t>(width_);
  for (size_t h = 0; h < rows.size(); ++h) {
    std::copy_n(z.begin() + static_cast<std::ptrdiff_t>(h * width), width,
                rows[h].begin() + static_cast<std::ptrdiff_t>(h * width));
  }
  return rows;
}

}  // namespace qkv
