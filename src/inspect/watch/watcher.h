// Watches a model while it is trained. Importance comes from inside backward, over all steps between two snapshots; the
// rest is measured when a snapshot is taken, on the same few texts each time. Nothing it does reaches the training.
#pragma once

#include <span>

#include "inspect/texts/reading.h"
#include "inspect/texts/token_counts.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// What a run is measured on.
struct WatchMaterial {
  std::vector<TokenText> texts;  // natural ones, with targets
  bool held_out = false;
  TokenCounts counts;  // of the training data
};

struct WatchOptions {
  Precision precision = Precision::f32();
  int64_t steps = 0, batch_tokens = 0;  // of the run
  int64_t length = 0;                   // of a text, at most
  uint64_t seed = 0;
};

// How many rows the natural texts of a run should have, and one of them: a small part of a step.
int64_t watched_rows(int64_t batch_tokens);
int64_t watched_length(int64_t batch_tokens);

class Watcher : public Probe {
 public:
  Watcher(const Model& model, const Engine& engine, WatchMaterial material, const WatchOptions& options);

  const WatchPlan& plan() const { return plan_; }
  bool due(int64_t step) const;
  double seconds() const { return seconds_; }  // spent here so far
  // A run that goes on: when snapshots are taken, and what they cost before.
  void go_on(const WatchPlan& plan, double seconds);

  // The weights are those after `step` steps. If the next step ends in a snapshot, its change will be known.
  void remember(int64_t step);
  void after_step(int64_t counted_targets);  // of the step whose backward this has seen
  Snapshot take(int64_t step);

  Ask ask(Place place, Site site) const override;
  void visit(Context&, const Tap&, Tensor&) override {}
  void visit_importance(Context& cx, const Tap& tap, const Tensor& z_dz) override;

 private:
  std::vector<float> sketch() const;
  std::vector<float> embeddings() const;

  const Model& model_;
  const Engine& engine_;
  WatchMaterial material_;
  WatchPlan plan_;
  Reader reader_;
  std::vector<TokenText> synthetic_;
  struct Watched {
    const Param* weight;
    std::vector<int64_t> entries;
  };
  std::vector<Watched> weights_;
  const Param* tokens_;

  std::vector<Snapshot::Importance> importance_;  // since the last snapshot
  std::vector<Snapshot::Importance> in_step_;     // of this step, before its divisor is known
  std::vector<int32_t> targets_;                  // of each text of the batch that is walked back
  std::vector<float> before_;                     // the sketch before the step that ends in a snapshot
  double seconds_ = 0;
};

}  // namespace qkv
