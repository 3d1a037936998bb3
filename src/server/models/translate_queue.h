// Translations by beam search: texts of many requests in the same passes, each with its own options, and word
// alignments of what was found.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "infer/beam_runner.h"
#include "inspect/look/alignment.h"
#include "open/open_model.h"

namespace qkv::server {

struct Translation {
  BeamRunner::Hypotheses found;            // best first
  std::optional<WordAlignment> alignment;  // of the best, if asked for
  std::string unaligned;                   // why there is none
};

class TranslateQueue {
 public:
  struct Job {
    std::vector<BeamRequest> texts;
    BeamOptions options;
    bool align = false;
    std::function<void(std::vector<Translation>, std::exception_ptr)> on_end;  // once, by step(), unless cancelled
  };
  using Ticket = int64_t;

  TranslateQueue(const OpenModel& model, Runner& runner, size_t most_waiting);

  // From any thread. An Error says what does not fit; QueueFull if too many texts wait.
  Ticket submit(Job job);
  void cancel(Ticket ticket);
  bool step();             // one pass, or one alignment; false if there was nothing to do
  size_t waiting() const;  // texts that are not done

 private:
  struct Running {
    Ticket ticket = 0;
    Job job;
    std::vector<Translation> made;
    std::vector<BeamRunner::Ticket> searches;
    size_t left = 0;  // searches that are not done, and alignments
    std::exception_ptr failed;
  };
  void take_inbox();
  void start(Running& running);
  bool align_one();
  void finish();

  const OpenModel& model_;
  BeamRunner beams_;
  size_t most_waiting_;
  mutable std::mutex mutex_;  // guards inbox_, cancelled_, waiting_, next_ticket_
  std::list<Running> inbox_;
  std::set<Ticket> cancelled_;
  size_t waiting_ = 0;
  Ticket next_ticket_ = 1;
  std::list<Running> running_;
};

}  // namespace qkv::server
