// Ctrl-C while something runs that can stop: asked for between steps.
#pragma once

#include <csignal>

namespace qkv::app {

// Thrown when a person ended it before anything came of it: exit code 130, as shells expect.
struct Interrupted {};

// The first Ctrl-C is kept for whoever asks, a second one ends the program at once. One at a time.
class InterruptWatch {
 public:
  InterruptWatch() {
    seen_ = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { seen_ = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptWatch() { sigaction(SIGINT, &before_, nullptr); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool seen() const { return seen_ != 0; }

 private:
  static inline volatile std::sig_atomic_t seen_ = 0;
  struct sigaction before_ = {};
};

}  // namespace qkv::app
