#include "measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace qkv::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kShortestTimed = 3e-3;  // seconds of one side in one round; shorter calls are repeated
constexpr int kFewestRounds = 3, kMostRounds = 9;

double wall_seconds(const std::function<double()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double second_call(const Work& work, double longest) {
  const double cold = wall_seconds(work.ours);
  return cold > longest ? cold : wall_seconds(work.ours);
}

struct Sized {
  Work work;
  int64_t size;
  double seconds;  // of one call
};

// The real size, or the largest whose calls are not too long. The next size is estimated as if all of the time grew
// with it, so an estimate is never too large, and then measured.
Sized make_work(const HotOp& op, double longest) {
  Sized now{op.make(op.first), op.first, 0};
  now.seconds = second_call(now.work, longest);
  while (now.size < op.full) {
    const double factor = std::pow(longest / now.seconds, 1.0 / op.power);
    const auto next =
        static_cast<int64_t>(std::min(factor * static_cast<double>(now.size), static_cast<double>(op.full)));
    const int64_t rounded = next == op.full ? next : next / op.first * op.first;
    if (rounded < now.size + now.size / 4 && rounded != op.full) break;
    if (rounded <= now.size) break;
    now.work = {};  // free its memory first
    now = {op.make(rounded), rounded, 0};
    now.seconds = second_call(now.work, longest);
  }
  return now;
}

struct Sample {
  double rate, switches;
};

Sample sample(const Work& work, const std::function<double()>& call) {
  const auto start = Clock::now();
  const double preempted = preemptions();
  double timed = 0;
  int calls = 0;
  for (; timed < kShortestTimed; ++calls) timed += call();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {.rate = work.amount * calls / timed, .switches = (preemptions() - preempted) / seconds};
}

Limit limit_of(Bound bound, const Limits& limits) {
  switch (bound) {
    case Bound::f32_products:
      return limits.fastest_f32();
    case Bound::bf16_products:
      return limits.fastest_bf16();
    case Bound::int8_products:
      return limits.fastest_int8();
    case Bound::memory:
      break;
  }
  return limits.memory();
}

// OpenMP's threads spin for some milliseconds before they sleep; wait until they no longer use the CPUs.
void let_others_sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

Row measure(const HotOp& op, Limits& limits, double seconds) {
  constexpr double kLongestCall = 2, kCalls = 5;  // about the fewest rounds and the warm-up
  const Sized sized = make_work(op, std::min(kLongestCall, seconds / kCalls));
  const Work& work = sized.work;
  Row row{.name = op.name,
          .dtype = op.dtype,
          .size = work.size,
          .full = sized.size == op.full,
          .amount = work.amount,
          .limit_kind = limit_of(op.bound, limits)};
  double round_seconds = sized.seconds + 5e-3;
  for (const Beside& other : work.beside) {
    wall_seconds(other.run);
    round_seconds += wall_seconds(other.run);
    row.beside.push_back({.name = other.name});
    if (const std::string found = other.check ? other.check() : ""; !found.empty()) {
      row.note += (row.note.empty() ? "" : "; ") + other.name + ": " + found;
    }
  }
  const int rounds = std::clamp(static_cast<int>(seconds / 2 / round_seconds), kFewestRounds, kMostRounds);
  for (int round = 0; round < rounds; ++round) {
    if (!work.beside.empty()) let_others_sleep();
    row.limit.push_back(limits.read(row.limit_kind, Limits::On::all));
    const Sample ours = sample(work, work.ours);
    row.ours.push_back(ours.rate);
    row.switches = round == 0 ? ours.switches : std::min(row.switches, ours.switches);
    for (size_t i = 0; i < work.beside.size(); ++i) {
      if (i > 0) let_others_sleep();
      row.beside[i].rates.push_back(sample(work, work.beside[i].run).rate);
    }
  }
  if (!work.beside.empty()) let_others_sleep();
  if (work.note) row.note += (row.note.empty() ? "" : "; ") + work.note();
  return row;
}

double preemptions() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_nivcsw);
}

double peak_memory() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) * 1024;
}

void read_limits(Limits& limits) {
  constexpr int kReadings = 5;
  for (int reading = 0; reading < kReadings; ++reading) {
    for (int l = 0; l < kLimits; ++l) {
      const auto limit = static_cast<Limit>(l);
      if (!limits.usable(limit)) continue;
      if (of(limit) == Limits::Of::cpu) limits.read(limit, Limits::On::one);
      limits.read(limit, Limits::On::all);
    }
  }
}

}  // namespace qkv::bench
