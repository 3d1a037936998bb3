// Likelihoods and translations of many texts: what qkv eval and qkv translate stand on.
#pragma once

#include <qkv/generate.h>

#include <functional>
#include <span>
#include <vector>

#include "infer/beam_runner.h"
#include "infer/generation_defaults.h"
#include "open/open_model.h"

namespace qkv::v1 {

// Caches for one text of a whole context, or a pass full of sentences. An Error for an encoder, whose texts have no
// likelihood.
RunOptions likelihood_room(const OpenModel& model, int64_t context, std::optional<DType> cache);

// The token that begins a text whose likelihood is asked for, if the model has one.
std::optional<int32_t> bos_of(const OpenModel& model);

// Sources by beam search, long ones together, each as it would be alone.
class BeamTranslator {
 public:
  struct Options {
    BeamChoices beams = {};
    int64_t rows = 64;    // most rows of a pass
    int64_t context = 0;  // most tokens of a text; 0: the usual
    std::optional<DType> cache = {};
  };
  // An Error for a model that translates nothing, or an option out of its range.
  BeamTranslator(const OpenModel& model, const Options& options);

  int64_t context() const { return context_; }
  // Hypotheses of each source, best first; none of an empty one. `go_on` is told between passes how many are done; false
  // ends it.
  std::vector<BeamRunner::Hypotheses> translate(std::span<const std::vector<int32_t>> sources,
                                                const std::function<bool(int64_t done)>& go_on);
  std::string text_of(const BeamSearch::Hypothesis& hypothesis) const;

 private:
  static BeamOptions checked_beams(const OpenModel& model, const Options& options, int64_t context);
  RunOptions room(const Options& options) const;

  const OpenModel& model_;
  int64_t context_, rows_;
  BeamOptions beams_;
  Runner runner_;
};

}  // namespace qkv::v1
