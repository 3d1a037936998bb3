// How far a model in training is from what can be known of the small language: how often words are, what follows what,
// grammar, and names that the text has given before.
#pragma once

#include <memory>

#include "inspect/texts/token_counts.h"
#include "labs/learning/small_language.h"
#include "labs/small_model.h"

namespace qkv {

struct PhaseDistance {
  double unigram = 0, bigram = 0, grammar = 0;  // KL(model || ...), nats, mean over words
  double known_names = 0;                       // loss of names of nouns that the text has named before
  double loss = 0;                              // of all words
};

class PhaseExam {
 public:
  PhaseExam(uint64_t seed, int64_t texts);

  std::vector<float> logits(const Engine& engine, const Model& model) const;
  PhaseDistance distance(std::span<const float> logits) const;

 private:
  TrainBatch batch_;
  std::vector<std::vector<float>> grammar_;
  std::vector<bool> known_name_;
  std::unique_ptr<TokenCounts> counts_;  // of other texts
};

struct PhasePoint {
  double step = 0;
  PhaseDistance at;
};
struct PhaseRun {
  std::vector<PhasePoint> points;  // denser at the start: every step, then every seventh part more
  std::vector<float> last;         // logits of the end
};
struct PhaseSchool {
  int64_t layers = 2, steps = 0;
  bool shuffled = false;  // words in random order: nothing but frequencies is left
};
PhaseRun run_phases(const LabContext& lab, const PhaseExam& exam, const PhaseSchool& school, uint64_t seed);

// A training without phases: everything is learnt at the same pace. The logits of the end, times 0 to 1.
PhaseRun even_path(const PhaseExam& exam, const PhaseRun& run);

}  // namespace qkv
