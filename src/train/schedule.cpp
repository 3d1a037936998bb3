#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace qkv {

double Schedule::at(int64_t step) const {
  const auto s = static_cast<double>(step);
  if (step < warmup) return peak * (s + 1) / static_cast<double>(warmup);
  switch (kind) {
    case Kind::constant:
      return peak;
    case Kind::cosine: {
      const auto span = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
      const double part = std::min(static_cast<double>(step - warmup) / span, 1.0);
      return last + (peak - last) * (1 + std::cos(std::numbers::pi * part)) / 2;
    }
    case Kind::inverse_sqrt:
      return peak * std::sqrt(static_cast<double>(std::max<int64_t>(warmup, 1)) / (s + 1));
    case Kind::stable_decay: {
      const int64_t left = steps - step;
      if (left > decay || decay == 0) return peak;
      return last + (peak - last) * static_cast<double>(std::max<int64_t>(left, 0)) / static_cast<double>(decay);
    }
  }
  return peak;
}

void Schedule::validate() const {
  QKV_CHECK(std::isfinite(peak) && peak > 0 && std::isfinite(last) && last >= 0 && last <= peak, "schedule.peak is ",
            peak, " and schedule.last is ", last, Hint("the peak must be above 0, the last from 0 to the peak"));
  QKV_CHECK(
      steps > 0 && warmup >= 0 && warmup <= steps && decay >= 0 && decay <= steps - warmup, "schedule.warmup is ",
      warmup, " and schedule.decay is ", decay, " but the run has ", steps, " steps",
      Hint("warm-up and decay must fit into the steps one after the other: lower them, as  --set schedule.warmup=",
           std::max<int64_t>(steps / 10, 0)));
}

const char* name_of(Schedule::Kind kind) {
  switch (kind) {
    case Schedule::Kind::constant:
      return "constant";
    case Schedule::Kind::cosine:
      return "cosine";
    case Schedule::Kind::inverse_sqrt:
      return "inverse_sqrt";
    case Schedule::Kind::stable_decay:
      return "stable_decay";
  }
  return "?";
}

}  // namespace qkv
