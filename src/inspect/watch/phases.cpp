// Finds the phases of a training run on its curves.
#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "inspect/watch/movie.h"

namespace qkv {
namespace {

double log_of(int64_t step) {
  return std::log(static_cast<double>(step) + 1);  // defined for step 0
}

Phase too_few(Phase phase, size_t snapshots) {
  phase.reason = "few_snapshots";
  phase.numbers = {{"snapshots", static_cast<double>(snapshots)}};
  return phase;
}

// Named fields are the phase's numbers.
constexpr std::pair<const char*, const char*> kReasons[] = {
    {"few_snapshots", "{snapshots:.0f} snapshots are too few"},
    {"lowest",
     "KL(model || {name}) {start:.3f} at step {first_step:.0f}, lowest here with {low:.3f}, {end:.3f} at the end"},
    {"never_lower", "KL(model || {name}) {start:.3f} at step {first_step:.0f}, never lower"},
    {"lowest_at_end",
     "KL(model || {name}) {start:.3f} at step {first_step:.0f}, still falling at the end with {low:.3f}"},
    {"jump",
     "the best head's induction score goes from {from:.3f} to {to:.3f}; it rises by {rise:.3f} from step "
     "{first_step:.0f} to {last_step:.0f}"},
    {"no_jump",
     "the best head's induction score goes from {from:.3f} to {to:.3f}; it rises by {rise:.3f} at most while the step "
     "doubles, a jump is {least}"},
    {"flat", "from here on the loss changes by less than {limit} nats per e-fold of steps"},
    {"still_falling",
     "the loss is still falling at the end: {slope:+.3f} nats per e-fold of steps, flat is under {limit}"},
    {"still_rising",
     "the loss is still rising at the end: {slope:+.3f} nats per e-fold of steps, flat is under {limit}"},
    {"no_texts", "no text was measured"},
    {"not_next_token", "this model does not predict the next token"},
    {"short_context", "the context is too short for repeated tokens"},
};

}  // namespace

std::string why_of(const Phase& phase) {
  const auto found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                  [&](const auto& reason) { return phase.reason == reason.first; });
  QKV_ASSERT(found != std::end(kReasons), "no words for the reason ", phase.reason);
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  arguments.push_back(fmt::arg("name", phase.name));
  for (const auto& [name, value] : phase.numbers) arguments.push_back(fmt::arg(name.c_str(), value));
  return fmt::vformat(found->second, arguments);
}

Phase nearest_phase(const std::string& name, std::span<const int64_t> steps, std::span<const double> divergence) {
  QKV_ASSERT(steps.size() == divergence.size(), steps.size(), " steps, ", divergence.size(), " values");
  Phase phase{.name = name};
  if (steps.size() < 3) return too_few(phase, steps.size());
  const auto at = static_cast<size_t>(std::min_element(divergence.begin(), divergence.end()) - divergence.begin());
  phase.numbers = {{"start", divergence.front()},
                   {"first_step", static_cast<double>(steps.front())},
                   {"low", divergence[at]},
                   {"end", divergence.back()}};
  if (at == 0) {
    phase.reason = "never_lower";
  } else if (at + 1 == steps.size()) {
    phase.reason = "lowest_at_end";
  } else {
    phase.step = steps[at];
    phase.reason = "lowest";
  }
  return phase;
}

Phase jump_phase(std::span<const int64_t> steps, std::span<const double> score) {
  QKV_ASSERT(steps.size() == score.size(), steps.size(), " steps, ", score.size(), " values");
  Phase phase{.name = "induction"};
  if (steps.size() < 3) return too_few(phase, steps.size());
  // The doubling of the step with the largest rise, then the steepest interval inside it.
  double rise = 0;
  size_t from = 0, to = 0;
  for (size_t a = 0; a < steps.size(); ++a) {
    for (size_t b = a + 1; b < steps.size(); ++b) {
      if (b > a + 1 && steps[b] + 1 > 2 * (steps[a] + 1)) break;  // adjacent snapshots always count
      if (score[b] - score[a] > rise) {
        rise = score[b] - score[a];
        from = a;
        to = b;
      }
    }
  }
  phase.numbers = {
      {"from", score.front()}, {"to", *std::max_element(score.begin(), score.end())}, {"rise", rise}, {"least", kJump}};
  phase.reason = "no_jump";
  if (rise < kJump) return phase;
  double steepest = 0;
  for (size_t i = from; i < to; ++i) {
    const double slope = (score[i + 1] - score[i]) / (log_of(steps[i + 1]) - log_of(steps[i]));
    if (slope <= steepest) continue;
    steepest = slope;
    phase.step = steps[i + 1];
  }
  phase.reason = "jump";
  phase.numbers["first_step"] = static_cast<double>(steps[from]);
  phase.numbers["last_step"] = static_cast<double>(steps[to]);
  return phase;
}

Phase plateau_phase(std::span<const int64_t> steps, std::span<const double> loss) {
  QKV_ASSERT(steps.size() == loss.size(), steps.size(), " steps, ", loss.size(), " values");
  Phase phase{.name = "plateau"};
  // Slopes over at least half an octave, so that two adjacent snapshots do not decide.
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
    if (j == steps.size()) continue;  // too close to the end
    const double slope = slope_to_end(i, j);
    if (!any) last = slope;
    any = true;
    if (std::abs(slope) >= kFlat) break;
    flat_from = i;
  }
  if (!any) return too_few(phase, steps.size());
  phase.numbers = {{"slope", last}, {"limit", kFlat}};
  if (flat_from == steps.size()) {
    phase.reason = last < 0 ? "still_falling" : "still_rising";
  } else {
    phase.step = steps[flat_from];
    phase.reason = "flat";
  }
  return phase;
}

}  // namespace qkv
