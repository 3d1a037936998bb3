// Training: from a recipe, as qkv train does it, or in a loop of one's own.
#pragma once

#include <qkv/model.h>

namespace qkv::QKV_INLINE v1 {

struct StepReport {
  int64_t step = 0, of = 0;  // steps done, in all
  double loss = 0;           // mean over the counted targets
  double lr = 0, grad_norm = 0;
  int64_t tokens = 0;  // of this step
  double seconds = 0;
};

struct EvaluationReport {
  int64_t step = 0;
  double loss = 0, perplexity = 0, bits_per_byte = 0;  // nats per target
  bool best = false;                                   // so far
};

struct TrainOptions {
  std::string recipe = {};             // one that ships, by name; a file; or JSON, which begins with {
  std::string out;                     // the run's folder
  std::vector<std::string> data = {};  // files instead of the recipe's data
  std::string from = {};               // a model to start from
  std::vector<std::string> set = {};   // keys to change, as "schedule.warmup=20"
  bool resume = false;                 // go on with the run in `out`, by its own recipe and what `set` changes
  Device device = Device::automatic;
  int threads = 0;
  std::function<bool(const StepReport&)> on_step = {};  // after each; false saves and stops
  std::function<void(const EvaluationReport&)> on_evaluation = {};
};

struct Trained {
  int64_t steps = 0, tokens = 0;
  double best_loss = 0;    // of the evaluations
  bool finished = false;   // false: stopped, or nothing improved any more
  std::string best, last;  // folders of models
};

// Until it is done or on_step says so. What a run writes is in docs/training.md.
QKV_API Trained train(const TrainOptions& options);
QKV_API std::vector<std::string> recipes();  // that ship

// Writes a model with random weights: a well-known one by name ("gpt2"), or a config.json, as text or as a file.
QKV_API void new_model(const std::string& preset_or_config, const std::string& folder, uint64_t seed);

// Texts of one step. Each token is asked for the one that follows, unless there are targets.
struct Batch {
  static constexpr int32_t kIgnored = -100;

  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<int32_t>> targets = {};  // for each token of each text, or kIgnored
  std::vector<std::vector<int32_t>> sources = {};  // of a model that translates
};

struct TrainerOptions {
  std::string optimizer = "adamw";  // or "muon", "sgd"
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, momentum = 0.95, decay = 0.1;
  double clip = 1;                       // largest norm of all gradients; 0: no clipping
  double smoothing = 0;                  // of labels
  std::vector<std::string> frozen = {};  // weights that stay as they are; '*' matches anything
  uint64_t seed = 0;                     // of dropout
  Precision precision = Precision::f32;
  Device device = Device::automatic;
  int threads = 0;
};

// A model that is trained by steps. For one thread at a time (BusyError otherwise).
class QKV_API Trainer {
 public:
  // Starts from a folder (new_model() makes one); weights are kept in f32.
  explicit Trainer(const std::string& path_or_name, const TrainerOptions& options = {});

  // Forward, backward and update. A loss that is not finite is an Error and changes no weight.
  StepReport step(const Batch& batch, double lr);
  double loss(const Batch& batch);  // without an update
  int64_t steps() const;            // done

  struct Weight {
    std::string name;
    std::vector<int64_t> shape;
    bool trained = true;
  };
  std::vector<Weight> weights() const;
  Array weight(std::string_view name) const;  // its numbers now

  // A new folder that qkv and Hugging Face load; the tokenizer goes along.
  void save(const std::string& folder) const;

  struct QKV_HIDDEN Impl;

 private:
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qkv::QKV_INLINEv1
