// Takes snapshots of a model during training. Importance is collected in backward over all steps between two snapshots;
// the rest is measured when a snapshot is taken, always on the same texts. Training is not affected: weights have the
// same bits with and without it.
#pragma once

#include <span>

#include "inspect/texts/reading.h"
#include "inspect/texts/token_counts.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// The texts snapshots are measured on.
struct WatchData {
  std::vector<TokenText> texts;  // natural texts with targets
  bool held_out = false;
  TokenCounts counts;  // of the training data
};

struct WatchOptions {
  Precision precision = Precision::f32();
  int64_t steps = 0, batch_tokens = 0;  // of the run
  int64_t length = 0;                   // of a text, at most
  uint64_t seed = 0;
};

// Total rows of the natural texts, and the length of one: a small part of a step.
int64_t watched_rows(int64_t batch_tokens);
int64_t watched_length(int64_t batch_tokens);

class Watcher : public Probe {
 public:
  Watcher(const Model& model, const Engine& engine, WatchData data, const WatchOptions& options);

  const WatchPlan& plan() const { return plan_; }
  bool due(int64_t step) const;
  double seconds() const { return seconds_; }  // spent on watching so far
  // For a run resumed after `done` steps: the existing plan and the seconds spent before. Where the run has another
  // number of steps now, plan() keeps the snapshots up to `done` and goes on with those of the new number.
  void resume(const WatchPlan& plan, int64_t done, double seconds);

  // Call before each step, with the number of steps done. If the step ends in a snapshot, keeps sampled weights so that
  // its update can be measured. Long runs measure the importance of heads in some steps only: each costs a download.
  void before_step(int64_t step);
  void after_step(int64_t counted_targets);  // call after each step, with its number of targets
  Snapshot take(int64_t step);

  Ask ask(Place place, Site site) const override;
  void visit(Context&, const Tap&, Tensor&) override {}
  void visit_importance(Context& cx, const Tap& tap, const Tensor& z_dz) override;

 private:
  std::vector<float> picked_rows(const Tensor& x, std::span<const int32_t> rows) const;
  std::vector<float> sketch() const;
  std::vector<float> embeddings() const;

  const Model& model_;
  const Engine& engine_;
  WatchData data_;
  WatchPlan plan_;
  Reader reader_;
  std::vector<TokenText> synthetic_;
  struct Watched {
    const Param* weight;
    std::vector<int32_t> entries;
  };
  std::vector<Watched> weights_;
  const Param* tokens_;

  std::vector<Snapshot::Importance> importance_;  // since the last snapshot
  std::vector<Snapshot::Importance> in_step_;     // of this step, not yet multiplied by its divisor
  int64_t every_ = 1;                             // steps from one whose importance is measured to the next
  bool measures_ = true;                          // the importance of heads, in this step
  std::vector<int32_t> targets_;                  // per text of the batch in backward
  std::vector<float> before_;                     // the sketch before the step that ends in a snapshot
  double seconds_ = 0;
};

}  // namespace qkv
