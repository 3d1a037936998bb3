// What a run looked like at one step, small enough to keep many of: head statistics, importance, some embeddings, a
// sketch of each matrix, how near the model is to plain token frequencies.
//
//   RUN/watch/watch.json                     what is the same in all of them
//   RUN/watch/step-00000128.safetensors      one snapshot, written whole or not at all
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

// What is the same in all snapshots of a run.
struct WatchPlan {
  std::vector<int64_t> steps;        // when they are taken
  std::vector<std::string> heads;    // L0H0
  std::vector<std::string> weights;  // L0 W_Q
  std::vector<int32_t> tokens;       // whose embeddings are kept, the most frequent first
  int64_t width = 0;                 // of an embedding
  int64_t texts = 0, synthetic = 0;  // natural texts and repeated random ones
  int64_t rows = 0, repeated = 0;    // tokens of the natural ones; L of the repeated ones
  bool held_out = false;             // the natural texts were not trained on
  int64_t counted = 0;               // training tokens behind the frequencies
};

struct Snapshot {
  static constexpr int64_t kSketch = 4096;  // entries of a matrix, the same ones at every step

  // Sums over the examples since the snapshot before; importance is |sum over its rows of z . dL/dz| of one example.
  struct Importance {
    double sum = 0, squares = 0;
    int64_t examples = 0;
    Estimate estimate() const;  // 95 % by the normal distribution
  };
  struct TextLosses {                          // of one natural text, sums over its targets
    double loss = 0, unigram = 0, bigram = 0;  // bigram: KL where the token before is known
    int64_t targets = 0, after = 0;
  };

  int64_t step = 0;
  double watch_seconds = 0, train_seconds = 0;                         // of the run so far
  std::vector<std::array<std::vector<TextSum>, kWatchedRoles>> roles;  // of each head, by text
  std::vector<Importance> importance;                                  // of each head
  std::vector<float> sketches;                                         // [weights, kSketch]
  std::vector<float> update;     // of each weight: |last step's change| / |weight|, 0 if unknown
  std::vector<float> embedding;  // [tokens, width]
  std::vector<TextLosses> texts;
  std::vector<TextSum> positions;  // loss by position: bucket b has positions [2^b - 1, 2^(b+1) - 1)
};

// When snapshots are taken: 0, 1, 2, ... each a quarter of an octave or a fixed number of steps after the one before,
// whichever is nearer, and the last step; `most` of them, 4 at least, further apart where they would be more. A
// function of the two numbers alone.
std::vector<int64_t> snapshot_steps(int64_t total, int64_t most);

class WatchFolder {
 public:
  static std::filesystem::path in(const std::filesystem::path& run) { return run / "watch"; }
  static bool exists(const std::filesystem::path& run);
  static WatchFolder create(const std::filesystem::path& run, WatchPlan plan);
  // An Error that says how to make one if the run was not watched.
  static WatchFolder open(const std::filesystem::path& run);

  const WatchPlan& plan() const { return plan_; }
  std::vector<int64_t> steps() const;  // of the snapshots there are
  // An Error that names the file if it is not what was written.
  Snapshot read(int64_t step) const;
  // Another thread writes it; what fails there is an Error of the next write() or wait().
  void write(Snapshot snapshot);
  void wait();
  // A run that goes on from this step takes the later ones again.
  void forget_after(int64_t step);

 private:
  WatchFolder(std::filesystem::path folder, WatchPlan plan) : folder_(std::move(folder)), plan_(std::move(plan)) {}

  std::filesystem::path folder_;
  WatchPlan plan_;
  std::future<void> writing_;
};

}  // namespace qkv
