// The dates of a training, from its curves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "inspect/watch/movie.h"

namespace qkv {
namespace {

double log_of(int64_t step) {
  return std::log(static_cast<double>(step) + 1);  // step 0 has one too
}

}  // namespace

Phase nearest_phase(const std::string& name, std::span<const int64_t> steps, std::span<const double> divergence) {
  QKV_ASSERT(steps.size() == divergence.size(), steps.size(), " steps, ", divergence.size(), " values");
  Phase phase{.name = name};
  if (steps.size() < 3) {
    phase.why = fmt::format("{} snapshots are too few", steps.size());
    return phase;
  }
  const auto at = static_cast<size_t>(std::min_element(divergence.begin(), divergence.end()) - divergence.begin());
  const double start = divergence.front(), low = divergence[at], end = divergence.back();
  const std::string curve = fmt::format("KL(model || {}) {:.3f} at step {}", name, start, steps.front());
  if (at == 0) {
    phase.why = curve + ", and never nearer";
  } else if (at + 1 == steps.size()) {
    phase.why = fmt::format("{}, {:.3f} at the end and still falling", curve, low);
  } else {
    phase.step = steps[at];
    phase.why = fmt::format("{}, lowest {:.3f} here, {:.3f} at the end", curve, low, end);
  }
  return phase;
}

Phase jump_phase(std::span<const int64_t> steps, std::span<const double> score) {
  QKV_ASSERT(steps.size() == score.size(), steps.size(), " steps, ", score.size(), " values");
  Phase phase{.name = "induction"};
  if (steps.size() < 3) {
    phase.why = fmt::format("{} snapshots are too few", steps.size());
    return phase;
  }
  // The octave with the largest rise, then the steepest stretch inside it.
  double rise = 0;
  size_t from = 0, to = 0;
  for (size_t a = 0; a < steps.size(); ++a) {
    for (size_t b = a + 1; b < steps.size(); ++b) {
      if (b > a + 1 && steps[b] + 1 > 2 * (steps[a] + 1)) break;  // neighbours count however far apart
      if (score[b] - score[a] > rise) {
        rise = score[b] - score[a];
        from = a;
        to = b;
      }
    }
  }
  const std::string curve = fmt::format("the best head's prefix matching goes from {:.3f} to {:.3f}", score.front(),
                                        *std::max_element(score.begin(), score.end()));
  if (rise < kJump) {
    phase.why = fmt::format("{}, by {:.3f} within an octave of steps at most; a jump is {}", curve, rise, kJump);
    return phase;
  }
  double steepest = 0;
  for (size_t i = from; i < to; ++i) {
    const double slope = (score[i + 1] - score[i]) / (log_of(steps[i + 1]) - log_of(steps[i]));
    if (slope <= steepest) continue;
    steepest = slope;
    phase.step = steps[i + 1];
  }
  phase.why = fmt::format("{}, by {:.3f} from step {} to {}", curve, rise, steps[from], steps[to]);
  return phase;
}

Phase plateau_phase(std::span<const int64_t> steps, std::span<const double> loss) {
  QKV_ASSERT(steps.size() == loss.size(), steps.size(), " steps, ", loss.size(), " values");
  Phase phase{.name = "plateau"};
  // Slopes over half an octave at least, so that two snapshots side by side do not decide.
  const auto slope_to_end = [&](size_t i, size_t j) {
    return (loss[j] - loss[i]) / (log_of(steps[j]) - log_of(steps[i]));
  };
  const double half_octave = 0.5 * std::log(2.0);
  size_t flat_from = steps.size();
  double last = 0;
  bool any = false;
  for (size_t i = steps.size(); i-- > 0;) {
    size_t j = i;
    while (j < steps.size() && log_of(steps[j]) - log_of(steps[i]) < half_octave) ++j;
    if (j == steps.size()) continue;  // too near the end to tell
    const double slope = slope_to_end(i, j);
    if (!any) last = slope;
    any = true;
    if (std::abs(slope) >= kFlat) break;
    flat_from = i;
  }
  if (!any) {
    phase.why = fmt::format("{} snapshots are too few", steps.size());
  } else if (flat_from == steps.size()) {
    phase.why = fmt::format("the loss is still {}: {:+.3f} nats per e-fold of steps at the end; flat is under {}",
                            last < 0 ? "falling" : "rising", last, kFlat);
  } else {
    phase.step = steps[flat_from];
    phase.why = fmt::format("from here on the loss changes by less than {} nats per e-fold of steps", kFlat);
  }
  return phase;
}

}  // namespace qkv
