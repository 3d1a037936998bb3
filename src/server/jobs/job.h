// A piece of work that a child process does for the page: a training, or a lab. Of the thread that watches it alone;
// others see what it publishes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/chat/ordered_json.h"

namespace qkv::server {

struct LossPoint {
  int64_t step = 0;
  double loss = 0;
  bool held_out = false;
};

// What a job has to tell since it was last asked.
struct JobNews {
  std::vector<LossPoint> losses = {};
  bool losses_restarted = false;                  // those before are void: a resumed run takes steps again
  std::shared_ptr<const std::string> movie = {};  // the report, if there is a new one
  bool any = false;                               // json() differs, or one of the above
};

class Job {
 public:
  enum class Kind : uint8_t { training, lab };
  enum class State : uint8_t { starting, running, paused, stopping, stopped, finished, failed };

  virtual ~Job() = default;
  virtual Kind kind() const = 0;
  virtual std::vector<std::string> command() const = 0;          // arguments of the program
  virtual void hear(const std::string& line) = 0;                // of the process's standard output
  virtual JobNews news() = 0;                                    // asked for a few times a second
  virtual JobNews last_news(int exit_code) = 0;                  // the process has ended
  virtual State end_state(int exit_code, bool asked) const = 0;  // asked: to stop
  virtual OrderedJson json() const = 0;                          // what the page shows of it, besides state and error
};
const char* name_of(Job::Kind kind);
const char* name_of(Job::State state);
inline bool is_over(Job::State state) {
  return state >= Job::State::stopped;
}

// The message of a command that failed, from what it wrote to standard error: without progress and warnings.
std::string complaint_of(const std::string& errors, int exit_code);

}  // namespace qkv::server
