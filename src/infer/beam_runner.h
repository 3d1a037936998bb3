// Beam search over the caches for many texts at once: every pass has one row for each beam of all active texts.
//
// Texts start in order, as soon as there is room. One that starts has all its pages reserved, so it can always finish.
// Results do not depend on what runs beside a text.
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

  // most_rows: rows of a pass; 0: the runner's chunk. One text always runs. All requests are checked here: an Error
  // says which text does not fit, need and have.
  BeamRunner(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options, int64_t most_rows = 0);
  BeamRunner(const BeamRunner&) = delete;
  BeamRunner& operator=(const BeamRunner&) = delete;
  ~BeamRunner();

  // One pass. False if everything is done.
  bool step();
  int64_t finished() const { return finished_; }           // texts
  std::vector<Hypotheses>& results() { return results_; }  // best first; empty for texts that are not done
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
  void fork_beams(Text& text, std::span<const BeamSearch::Step> steps);

  Runner& runner_;
  std::span<const BeamRequest> requests_;  // owned by the caller
  BeamOptions options_;
  int64_t most_at_once_ = 0;
  int64_t source_pages_ = 0;  // in use
  size_t next_ = 0;           // the next request to start
  std::list<Text> active_;
  std::vector<Hypotheses> results_;
  int64_t finished_ = 0;
};

// Runs all of them to the end.
std::vector<BeamRunner::Hypotheses> beam_search(Runner& runner, std::span<const BeamRequest> requests,
                                                const BeamOptions& options);

}  // namespace qkv
