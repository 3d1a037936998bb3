// Beam search over the caches for many texts at once: every pass has one row of each living beam of all texts that run.
//
// Texts start in the order they came, as soon as others have ended; one that starts has its pages promised, so it can
// always end. What a text becomes never depends on what runs beside it.
#pragma once

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
  using Hypotheses = std::vector<BeamSearch::Hypothesis>;

  // At most so many rows in a pass, 0: as many as the runner's chunk has; one text always runs. Everything is checked
  // here: an Error says which text does not fit, and both numbers.
  BeamRunner(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options, int64_t most_rows = 0);
  BeamRunner(const BeamRunner&) = delete;
  BeamRunner& operator=(const BeamRunner&) = delete;
  ~BeamRunner();

  // One pass. False if everything is done.
  bool step();
  int64_t finished() const { return finished_; }           // texts
  std::vector<Hypotheses>& results() { return results_; }  // best first; of those that are not done yet, none
  int64_t most_at_once() const { return most_at_once_; }   // texts

 private:
  struct Text {
    size_t index = 0;
    BeamSearch search;
    std::vector<Runner::Sequence> beams = {};  // one for each of search.live()
    int64_t source_pages = 0;
  };

  int64_t pages_of_a_text() const;
  void admit();
  void start(std::span<Text* const> texts);
  void follow(Text& text, std::span<const BeamSearch::Step> steps);

  Runner& runner_;
  std::span<const BeamRequest> requests_;  // the caller's
  BeamOptions options_;
  int64_t most_at_once_ = 0;
  int64_t source_pages_ = 0;  // taken
  size_t next_ = 0;           // request that has not started
  std::list<Text> active_;
  std::vector<Hypotheses> results_;
  int64_t finished_ = 0;
};

// All of them, to the end.
std::vector<BeamRunner::Hypotheses> beam_search(Runner& runner, std::span<const BeamRequest> requests,
                                                const BeamOptions& options);

}  // namespace qkv
