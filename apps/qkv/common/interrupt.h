// Ctrl-C in commands that can stop: they ask between steps whether it was pressed.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

#include "base/temporaries.h"

namespace qkv::app {

inline constexpr int kInterruptedExit = 130;  // as shells expect

// Thrown where Ctrl-C ended a command before it had a result: exit code 130.
struct Interrupted {};

// Thrown where a process that did the work ended so and has said why.
struct ExitWith {
  int code;
};

// While it lives, the first of these signals is remembered and a second one ends the program at once. One at a time. With
// From::first_look the first one ends it too until seen() is called: for commands that prepare something before they ask.
class InterruptWatch {
 public:
  enum class From { now, first_look };

  explicit InterruptWatch(const std::vector<int>& signals = {SIGINT}, From from = From::now) {
    seen_ = 0;
    remembers_ = from == From::now ? 1 : 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (seen_ != 0 || remembers_ == 0) die_of_signal(signal);
      seen_ = 1;
    };
    action.sa_flags = SA_RESTART;
    for (const int signal : signals) sigaction(signal, &action, &before_.emplace_back(signal, Action{}).second);
  }
  ~InterruptWatch() {
    for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool seen() const {
    remembers_ = 1;
    return seen_ != 0;
  }

 private:
  using Action = struct sigaction;

  static inline volatile std::sig_atomic_t seen_ = 0, remembers_ = 1;
  std::vector<std::pair<int, Action>> before_;
};

}  // namespace qkv::app
