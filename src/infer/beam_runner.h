// Beam search over the caches for many texts at once: every pass has one row for each beam of all active texts.
//
// Texts start in order, as soon as there is room. One that starts has all its pages reserved, so it can always finish.
// Results do not depend on what runs beside a text; each has its own options.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "infer/beam.h"
#include "infer/runner.h"

namespace qkv {

struct BeamRequest {
  std::vector<int32_t> prompt;  // an encoder-decoder's start token if empty
  std::vector<int32_t> source;  // what an encoder reads
};

class BeamRunner {
 public:
  using Hypotheses = std::vector<BeamSearch::Hypothesis>;  // best first
  using Ticket = int32_t;

  // most_rows: rows of a pass; 0: the runner's chunk. One text always runs.
  explicit BeamRunner(Runner& runner, int64_t most_rows = 0);
  // With these texts, whose hypotheses are results().
  BeamRunner(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options, int64_t most_rows = 0);
  BeamRunner(const BeamRunner&) = delete;
  BeamRunner& operator=(const BeamRunner&) = delete;
  ~BeamRunner();

  // An Error says what does not fit, need and have. From any thread.
  void check(const BeamRequest& request, const BeamOptions& options) const;
  // One more text, checked; step() calls `on_end` when it is done, or with what it failed by.
  using OnEnd = std::function<void(Hypotheses, std::exception_ptr)>;
  Ticket add(BeamRequest request, const BeamOptions& options, OnEnd on_end);
  // Its search ends here, and its pages are free; on_end is not called.
  void cancel(Ticket ticket);

  // One pass. False if everything is done. If it throws, those that were active are gone.
  bool step();
  int64_t finished() const { return finished_; }  // texts
  int64_t unfinished() const { return std::ssize(waiting_) + std::ssize(active_); }
  std::vector<Hypotheses>& results() { return results_; }  // empty for texts that are not done
  int64_t most_active() const { return most_active_; }     // texts at once, so far

 private:
  struct Text {
    Ticket ticket = 0;
    BeamRequest request;
    BeamOptions options;
    BeamSearch search;
    OnEnd on_end;
    std::vector<Runner::Sequence> beams = {};  // one for each of search.live()
    int64_t pages() const { return options.beams * KvCache::pages_for(options.max_length); }  // beams may share none
    int64_t source_pages() const { return KvCache::pages_for(std::ssize(request.source)); }
  };
  using Texts = std::list<Text>;

  bool has_room(const Text& text) const;
  void admit();
  void start(std::span<Text* const> texts);
  void fork_beams(Text& text, std::span<const BeamSearch::Step> steps);
  void drop(Texts::iterator text);

  Runner& runner_;
  int64_t most_rows_;
  Ticket next_ticket_ = 0;
  Texts waiting_, active_;
  int64_t rows_ = 0, pages_ = 0, source_pages_ = 0;  // of those that are active, at most
  std::vector<Hypotheses> results_;
  int64_t finished_ = 0, most_active_ = 0;
};

// Runs all of them to the end.
std::vector<BeamRunner::Hypotheses> beam_search(Runner& runner, std::span<const BeamRequest> requests,
                                                const BeamOptions& options);

}  // namespace qkv
