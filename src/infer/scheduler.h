// Many generations at once: every pass has a row or more of each session that is writing, and chunks of prompts beside
// them. What a request says never depends on what runs beside it.
//
// Requests start in the order they came. One that starts has its pages promised, so it can always end. Prompts that
// begin as an earlier text did share its pages; finished texts are kept for that until their pages are needed.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>

#include "infer/session.h"

namespace qkv {

struct Request {
  SessionOptions options;
  std::function<bool(const Choice&)> on_token = {};  // each token as it is chosen; false: no more are wanted
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

  // From any thread. An Error if the request makes no sense, can never fit, or too many wait.
  using Ticket = int32_t;
  Ticket submit(Request request);
  // From any thread, at any moment: it ends before the next pass.
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
    int64_t shared = 0;            // prompt tokens that were not read again
    int64_t guessed = 0, guessed_right = 0;
  };
  Counts counts() const;

 private:
  struct Job {
    Ticket ticket = 0;
    Session session;
    Request request;
    int64_t promised = 0, source_pages = 0;  // of the caches
  };
  using Jobs = std::list<Job>;
  struct Kept {
    std::vector<int32_t> ids;  // what the pages hold
    Runner::Sequence sequence;
    bool as_long = false;
  };
  struct Prefix {
    int64_t length = 0;
    Runner::Sequence from;
    bool coming = false;  // a longer one is being read right now
  };

  void take_inbox();
  void admit();
  bool make_room(const Job& job);
  void start_job(Job& job, const Prefix& prefix);
  void start_sources(std::span<Job* const> jobs);
  Prefix find_prefix(const Session& session) const;
  void run_pass();
  void tell(Job& job, std::span<const Choice> chosen, int64_t rows);
  void finish(Jobs::iterator job);
  void keep(Session& session);

  Runner& runner_;
  Options options_;
  mutable std::mutex mutex_;  // of what other threads touch: inbox, cancelled, waiting count
  Jobs inbox_;
  std::set<Ticket> cancelled_;
  int64_t in_queue_ = 0;
  Counts shown_;
  std::atomic<Ticket> next_ticket_ = 1;

  Jobs waiting_, active_;
  std::list<Kept> kept_;  // the one used last at the back
  int64_t promised_ = 0, promised_sources_ = 0, kept_pages_ = 0;
  Counts counts_;  // of the thread that steps
};

}  // namespace qkv
