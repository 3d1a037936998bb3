// What `bench serve` measured, and how it is shown.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bed.h"
#include "limits.h"
#include "scheduler_runs.h"
#include "stream_clients.h"

namespace qkv::bench {

struct ServeOptions {
  std::string preset = "gpt2", device = "cpu";
  int64_t clients = 32, slots = 0, requests = 96, prompt = 32, tokens = 32, rounds = 5;
  int threads = 0;
  bool json = false;
};

struct ServerRun {
  StreamTimes times;
  int64_t passes = 0;
  double cpu = 0;      // seconds of the server's threads beside the engine
  double all_cpu = 0;  // of the whole process, clients included
};

struct Round {
  SchedulerRun at_once, in_turn;
  ServerRun served, looking;
};

// Rounds follow each other in time, so what else the machine does changes the speeds of one round alike: the median of
// the rounds' ratios says more than a ratio of best speeds.
struct Summary {
  const ServeOptions& options;
  std::string device;
  int64_t weights = 0;
  const std::vector<Round>& rounds;

  template <class Of>
  std::vector<double> each(const Of& of) const {
    std::vector<double> values;
    for (const Round& round : rounds) values.push_back(of(round));
    return values;
  }
  static double speed(const SchedulerRun& run) { return number(run.tokens) / run.seconds; }
  static double speed(const ServerRun& run) { return number(run.times.tokens) / run.times.seconds; }

  std::vector<double> at_once() const {
    return each([](const Round& r) { return speed(r.at_once); });
  }
  std::vector<double> in_turn() const {
    return each([](const Round& r) { return speed(r.in_turn); });
  }
  std::vector<double> served() const {
    return each([](const Round& r) { return speed(r.served); });
  }
  std::vector<double> looking() const {
    return each([](const Round& r) { return speed(r.looking); });
  }
  std::vector<double> ratios() const {
    return each([](const Round& r) { return speed(r.served) / speed(r.in_turn); });
  }
  std::vector<double> ratios_at_once() const {
    return each([](const Round& r) { return speed(r.served) / speed(r.at_once); });
  }
  std::vector<double> look_ratios() const {
    return each([](const Round& r) { return speed(r.looking) / speed(r.served); });
  }
  // Microseconds of the server's own threads for a token.
  std::vector<double> cpu(ServerRun Round::*which) const {
    return each([&](const Round& r) { return 1e6 * (r.*which).cpu / number((r.*which).times.tokens); });
  }
  std::vector<double> client_cpu() const {
    return each([](const Round& r) { return 1e6 * r.served.times.client_seconds / number(r.served.times.tokens); });
  }
  // Of all threads for a token, to what the Scheduler's callers in turn take. Hardly moved by what else the machine does.
  std::vector<double> cpu_ratios(ServerRun Round::*which) const {
    return each([&](const Round& r) {
      const double own = (r.*which).all_cpu / number((r.*which).times.tokens);
      return own / (r.in_turn.all_cpu / number(r.in_turn.tokens));
    });
  }
  StreamTimes all_times() const {
    StreamTimes all;
    for (const Round& r : rounds) {
      all.first.insert(all.first.end(), r.served.times.first.begin(), r.served.times.first.end());
      all.next.insert(all.next.end(), r.served.times.next.begin(), r.served.times.next.end());
    }
    return all;
  }
  Json json() const;
  std::string text() const;
};

}  // namespace qkv::bench
