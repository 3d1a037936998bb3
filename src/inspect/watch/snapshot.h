// Small snapshots of a training run: head statistics, importance, some embeddings, sampled entries of each matrix, and
// the divergence from plain token frequencies.
//
//   RUN/watch/watch.json                     WatchPlan, common to all snapshots
//   RUN/watch/step-00000128.safetensors      one snapshot, written atomically
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "inspect/report/estimate.h"

namespace qkv {

enum class WatchedRole : uint8_t { previous, duplicate, induction, first, entropy, distance };
inline constexpr size_t kWatchedRoles = 6;
const char* name_of(WatchedRole role);

// What all snapshots of a run have in common.
struct WatchPlan {
  std::vector<int64_t> steps;        // at which they are taken
  std::vector<std::string> heads;    // L0H0
  std::vector<std::string> weights;  // L0 W_Q
  std::vector<int32_t> tokens;       // whose embeddings are kept, the most frequent first
  int64_t width = 0;                 // of an embedding
  int64_t texts = 0, synthetic = 0;  // natural texts and repeated random ones
  int64_t rows = 0, repeated = 0;    // tokens of the natural texts; length L of a repeated block
  bool held_out = false;             // the natural texts were not trained on
  int64_t counted = 0;               // training tokens counted for the frequencies
};

struct Snapshot {
  static constexpr int64_t kSketch = 4096;  // sampled entries of a matrix, the same at every step

  // Sums over the examples since the previous snapshot, of |sum over an example's rows of z . dL/dz|.
  struct Importance {
    double sum = 0, squares = 0;
    int64_t examples = 0;
    Estimate estimate() const;  // 95 % interval by Student's t
  };
  struct TextLosses {                          // sums over the targets of one natural text
    double loss = 0, unigram = 0, bigram = 0;  // KL from the frequencies; bigram: where the previous token is known
    int64_t targets = 0, after = 0;
  };

  int64_t step = 0;
  double watch_seconds = 0, train_seconds = 0;                         // of the run so far
  std::vector<std::array<std::vector<TextSum>, kWatchedRoles>> roles;  // per head, role and text
  std::vector<Importance> importance;                                  // per head
  std::vector<float> sketches;                                         // [weights, kSketch]
  std::vector<float> update;     // per weight: |change of the last step| / |weight|, 0 if unknown
  std::vector<float> embedding;  // [tokens, width]
  std::vector<TextLosses> texts;
  std::vector<TextSum> positions;  // loss by position: bucket b has positions [2^b - 1, 2^(b+1) - 1)
};

// The steps at which snapshots are taken: 0, 1, 2, ..., each a quarter of an octave or a fixed number of steps after
// the previous one, whichever is less, and the last step. At most `most` (at least 4); the spacing grows if there would
// be more. Depends on the two arguments only.
std::vector<int64_t> snapshot_steps(int64_t total, int64_t most);

class WatchFolder {
 public:
  static std::filesystem::path in(const std::filesystem::path& run) { return run / "watch"; }
  static bool exists(const std::filesystem::path& run);
  static WatchFolder create(const std::filesystem::path& run, WatchPlan plan);
  // An Error that says how to make one if the run was not watched.
  static WatchFolder open(const std::filesystem::path& run);

  const WatchPlan& plan() const { return plan_; }
  // For a run that is given another number of steps.
  void plan_steps(std::vector<int64_t> steps);
  std::vector<int64_t> steps() const;  // of the existing snapshots
  // An Error that names the file if it is damaged.
  Snapshot read(int64_t step) const;
  // Written by another thread; its failure is thrown by the next write() or wait().
  void write(Snapshot snapshot);
  void wait();
  // Removes later snapshots: a run resumed at this step takes them again.
  void remove_after(int64_t step);

 private:
  WatchFolder(std::filesystem::path folder, WatchPlan plan) : folder_(std::move(folder)), plan_(std::move(plan)) {}

  std::filesystem::path folder_;
  WatchPlan plan_;
  std::future<void> writing_;
};

}  // namespace qkv
