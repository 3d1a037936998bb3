// Many generations at once: every pass has the rows of each session that decodes, and chunks of prompts that prefill.
// Output never depends on what runs beside a request.
//
// Requests start in order. One that starts has its pages reserved, so it can always finish. Prompts share the pages of
// earlier texts with the same prefix; finished texts are kept for that until their pages are needed.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>

#include "base/error.h"
#include "infer/session.h"

namespace qkv {

// Thrown by submit when too many requests wait.
class QueueFull : public Error {
 public:
  using Error::Error;
};

struct Request {
  SessionOptions options;
  std::function<bool(const Choice&)> on_token = {};  // each token as it is chosen; false ends it
  std::function<void(const Session&)> on_end = {};   // once, at the end; ended() says how
};

class Scheduler {
 public:
  struct Options {
    int64_t most_active = 32;     // sessions in one pass
    int64_t most_waiting = 1024;  // before them
    int64_t most_kept = 64;       // texts kept for their prefixes
  };
  explicit Scheduler(Runner& runner) : Scheduler(runner, Options{}) {}
  Scheduler(Runner& runner, const Options& options);
  ~Scheduler();
  const Runner& runner() const { return runner_; }

  // From any thread. An Error if the request is invalid or can never fit; QueueFull if most_active + most_waiting are
  // not finished.
  using Ticket = int32_t;
  Ticket submit(Request request);
  bool full() const;  // whether submit would say QueueFull now
  // From any thread at any time: it ends before the next pass.
  void cancel(Ticket ticket);

  // One pass; callbacks are called from here. False if there was nothing to do.
  bool step();
  void run() {
    while (step()) {
    }
  }

  struct Counts {
    int64_t waiting = 0, active = 0, kept = 0;
    int64_t passes = 0, rows = 0;  // so far
    int64_t shared = 0;            // prompt tokens taken from the cache
    int64_t guessed = 0, guessed_right = 0;
    int64_t pages = 0, pages_used = 0;  // of the cache, now
  };
  Counts counts() const;

 private:
  struct Job {
    Ticket ticket = 0;
    Session session;
    Request request;
    int64_t reserved = 0, source_pages = 0;  // of the caches
  };
  using Jobs = std::list<Job>;
  struct Kept {
    std::vector<int32_t> ids;  // tokens in its pages
    Runner::Sequence sequence;
    bool long_rope = false;
    int32_t owner = 0;
  };
  struct Prefix {
    int64_t length = 0;
    Runner::Sequence from;
    bool coming = false;  // a longer one is being prefilled
  };

  int64_t room() const { return options_.most_active + options_.most_waiting; }
  void take_inbox();
  void admit();
  bool make_room(const Job& job);
  void start_job(Job& job, const Prefix& prefix);
  void start_sources(std::span<Job* const> jobs);
  Prefix find_prefix(const Session& session) const;
  void run_pass();
  void report(Job& job, std::span<const Choice> chosen, int64_t rows);
  void finish(Jobs::iterator job);
  void keep(Session& session);
  void show_counts();

  Runner& runner_;
  Options options_;
  mutable std::mutex mutex_;  // guards what other threads use: inbox, cancelled, counts
  Jobs inbox_;
  std::set<Ticket> cancelled_;
  int64_t in_queue_ = 0, in_passes_ = 0;  // requests that wait, and those that run
  Counts shown_;
  std::atomic<Ticket> next_ticket_ = 1;

  Jobs waiting_, active_;
  std::list<Kept> kept_;  // most recently used at the back
  int64_t reserved_ = 0, reserved_sources_ = 0, kept_pages_ = 0;
  Counts counts_;  // used by the stepping thread only
};

}  // namespace qkv
