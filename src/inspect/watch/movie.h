// How a model learnt, from the snapshots of its training: roles and importance of heads, motion of embeddings and
// matrices, and the dates of its phases.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// A phase begins or ends at a step, or was not seen.
struct Phase {
  std::string name;
  std::optional<int64_t> step;
  std::string reason;                     // a key: why_of() has its words, the report page has them in two languages
  std::map<std::string, double> numbers;  // that the reason is given with
};
std::string why_of(const Phase& phase);  // one English sentence

using Series = std::vector<std::optional<double>>;  // one for each snapshot; nothing where it was not measured

struct Movie {
  struct Head {
    std::string name;
    std::array<std::vector<Estimate>, kWatchedRoles> roles;  // n = 0: does not apply
    std::vector<Estimate> importance;                        // over the steps since the snapshot before, in nats
    Series in_layer;                                         // the same over the length of its layer's (Michel)
  };
  struct Weight {
    std::string name;
    std::vector<double> moved;   // |W_t - W_first| / |W_first|
    std::vector<double> cosine;  // of W_t and W_last
    std::vector<double> update;  // of the last step: |dW| / |W|; 0 if unknown
  };
  struct Embedding {
    std::vector<int32_t> tokens;
    std::array<double, 2> share = {};       // of the last snapshot's variance that the two axes show
    std::vector<std::vector<double>> x, y;  // by snapshot and token
    std::vector<double> neighbours;         // share of a token's ten nearest that are those of the end
  };
  struct Logged {
    int64_t step = 0;
    std::optional<double> loss, held_out;
  };
  struct Sample {
    int64_t step = 0;
    std::string text;
  };

  WatchPlan plan;
  std::vector<int64_t> steps;
  std::vector<Estimate> loss, unigram, bigram;  // nats; KL(model || frequencies)
  Series icl;                                   // loss late in a text less loss early in it
  std::vector<Head> heads;
  std::vector<Weight> weights;
  Embedding embedding;
  std::vector<Phase> phases;
  std::vector<Logged> log;
  std::vector<Sample> samples;
  double watch_seconds = 0, train_seconds = 0;
};

// From RUN/watch, RUN/log.jsonl and RUN/samples.jsonl. An Error if there are no snapshots or one is damaged.
// `finished` is told how many snapshots are read.
Movie make_movie(const std::filesystem::path& run, const std::function<void(size_t done, size_t all)>& finished = {});

// The part "movie" of a report; `texts`: of the embedding's tokens.
Json to_json(const Movie& movie, const std::vector<std::string>& texts);

// Dates of phases on any curves; one value for each step.
//   minimum   the model was never nearer to the frequencies; not at the ends of the curve, where nothing turned
//   jump      the steepest rise over the logarithm of the step, if it rises by kJump within one octave
//   plateau   from here on no falls by more than kFlat nats while the step grows by e
inline constexpr double kJump = 0.15, kFlat = 0.1;
Phase nearest_phase(const std::string& name, std::span<const int64_t> steps, std::span<const double> divergence);
Phase jump_phase(std::span<const int64_t> steps, std::span<const double> score);
Phase plateau_phase(std::span<const int64_t> steps, std::span<const double> loss);

double cosine(std::span<const float> a, std::span<const float> b);  // 0 if one is zero

}  // namespace qkv
