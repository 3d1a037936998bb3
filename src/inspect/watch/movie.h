// The course of a training run, from its snapshots: roles and importance of heads, change of embeddings and weights,
// and the steps at which phases begin.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/watch/snapshot.h"

namespace qkv {

// A phase of the training and the step at which it was reached, if any.
struct Phase {
  std::string name;
  std::optional<int64_t> step;
  std::string reason;                     // a key: why_of() has its words, the report page has them in two languages
  std::map<std::string, double> numbers;  // that the reason is given with
};
std::string why_of(const Phase& phase);  // one English sentence

using Series = std::vector<std::optional<double>>;  // one per snapshot; absent where not measured

struct Movie {
  struct Head {
    std::string name;
    std::array<std::vector<Estimate>, kWatchedRoles> roles;  // n = 0: not applicable
    std::vector<Estimate> importance;                        // over the steps since the previous snapshot, in nats
    Series in_layer;                                         // divided by the l2 norm over the layer's heads (Michel)
  };
  struct Weight {
    std::string name;
    std::vector<double> moved;   // |W_t - W_first| / |W_first|
    std::vector<double> cosine;  // of W_t and W_last
    std::vector<double> update;  // |dW| / |W| of the last step; 0 if unknown
  };
  struct Embedding {
    std::vector<int32_t> tokens;
    std::array<double, 2> share = {};       // of the variance at `basis` explained by each axis
    int64_t basis = 0;                      // step whose two directions of most variance are the axes of all snapshots
    std::vector<std::vector<double>> x, y;  // by snapshot and token
    std::vector<double> neighbours;         // share of a token's ten nearest neighbours that are also its final ones
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
  Series icl;                                   // in-context learning: loss late in a text minus loss early in it
  std::vector<Head> heads;
  std::vector<Weight> weights;
  Embedding embedding;
  std::vector<Phase> phases;
  std::vector<Logged> log;
  std::vector<Sample> samples;
  double watch_seconds = 0, train_seconds = 0;
};

// The rule of qkv heads for the same measure: the whole interval at or above the threshold. What is no role (entropy,
// distance) has no threshold.
std::optional<double> threshold_of(WatchedRole role);
bool has_role(WatchedRole role, const Estimate& score);

// From RUN/watch, RUN/log.jsonl and RUN/samples.jsonl. An Error if there are no snapshots or one is damaged.
// `finished` is told how many snapshots are read.
Movie make_movie(const std::filesystem::path& run, const std::function<void(size_t done, size_t all)>& finished = {});

// The movie of a run that goes on: what is new in its folder is read, and nothing twice.
class GrowingMovie {
 public:
  explicit GrowingMovie(std::filesystem::path run);
  GrowingMovie(const GrowingMovie&) = delete;
  GrowingMovie& operator=(const GrowingMovie&) = delete;
  ~GrowingMovie();

  // Reads the snapshots that are new, and drops those that a resumed run took back. False: nothing changed, or the run
  // has no snapshots yet.
  bool grow(const std::function<void(size_t done, size_t all)>& finished = {});
  bool empty() const;
  // So far, with the run's log and samples. The axes of the embeddings stay while they explain the newest snapshot
  // nearly as well as its own would; the last movie has those of the last snapshot.
  Movie movie(bool last);

 private:
  struct Kept;
  std::filesystem::path run_;
  std::unique_ptr<Kept> kept_;
};

// Tokens of a run's embeddings as people read them. Empty for a part of a character.
std::vector<std::string> movie_texts(const std::filesystem::path& run, const std::vector<int32_t>& tokens);

// The part "movie" of a report; `texts`: the embedding's tokens as text.
Json to_json(const Movie& movie, const std::vector<std::string>& texts);

// A movie of such a report, without the snapshots it was made of: what is shown of it is the same.
struct ToldMovie {
  Movie movie;
  std::vector<std::string> texts;
};
ToldMovie read_movie(const std::filesystem::path& report);

// Steps of phases, from curves with one value per step.
//   nearest   minimum of the KL divergence from the frequencies; none if it is at either end of the curve
//   jump      steepest rise over the logarithm of the step, if the score rises by kJump while the step doubles
//   plateau   from here on the loss changes by less than kFlat nats while the step grows by a factor of e
inline constexpr double kJump = 0.15, kFlat = 0.1;
Phase nearest_phase(const std::string& name, std::span<const int64_t> steps, std::span<const double> divergence);
Phase jump_phase(std::span<const int64_t> steps, std::span<const double> score);
Phase plateau_phase(std::span<const int64_t> steps, std::span<const double> loss);

double cosine(std::span<const float> a, std::span<const float> b);  // 0 if one is zero

}  // namespace qkv
