#include "labs/heads/jump.h"

#include <algorithm>
#include <cmath>

namespace qkv {
namespace {

// Where the line from a to b has the height y.
double crossing(const LabPoint& a, const LabPoint& b, double y) {
  return b.y == a.y ? b.x : a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
}

}  // namespace

double jump_in_log_steps(std::span<const LabPoint> points) {
  const double first = points.front().y, rise = points.back().y - first, steps = points.back().x;
  if (rise <= 0 || steps <= 1) return 1;
  const double low = first + 0.1 * rise, high = first + 0.9 * rise;
  double begin = 1;
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i - 1].y <= low && points[i].y > low) begin = crossing(points[i - 1], points[i], low);
    if (points[i].y >= high) {
      const double end = crossing(points[i - 1], points[i], high);
      return std::clamp(std::log(std::max(end, 1.0) / std::max(begin, 1.0)) / std::log(steps), 0.0, 1.0);
    }
  }
  return 1;
}

}  // namespace qkv
