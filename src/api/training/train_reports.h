// What a training run says of itself: its plan, its log, texts it writes, lines it translates. A TrainScreen shows them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace qkv {

struct TranslationScore {
  double bleu = 0, chrf = 0;
  int64_t lines = 0;
  std::vector<std::pair<std::string, std::string>> examples;  // a few: source and translation
};

struct TrainPlan {
  Trainer::Memory memory;
  double best_product = 0;  // operations per second of one large matmul, measured at the start
  int64_t parameters = 0;
  double seconds = 0, epochs = 0;  // expected
};

// What watching took: seconds, and these over those of training.
struct WatchEnd {
  size_t snapshots = 0;
  double seconds = 0, share = 0;
};

std::string megabytes(int64_t bytes);

// An Error with need and have if a run does not fit into the memory of its device, or its checkpoints into the host's.
// `alternatives`: asked for what would need less.
void check_memory(const Trainer::Memory& memory, const Device& device,
                  FunctionRef<std::vector<Trainer::Alternative>()> alternatives);

Json log_line(const EvalResult& result);

class TrainReports {
 public:
  TrainReports(const Engine& engine, const Recipe& recipe, Trainer& trainer, const TrainData& data,
               std::filesystem::path tokenizer)
      : engine_(engine), recipe_(recipe), trainer_(trainer), data_(data), tokenizer_(std::move(tokenizer)) {}

  // An Error for what the run would refuse only later: prompts without room, data without targets.
  void check(const Model& model) const;
  TrainPlan plan(const Model& model, const Trainer::Memory& memory);

  double rate(const StepReport& report) const { return trainer_.operations_per_step() / report.seconds; }
  Json log_line(const StepReport& report) const;

  // Texts the model writes now, from the recipe's prompts or from nothing.
  std::vector<std::string> samples(const Model& model) const;
  // Some held-out sources, translated greedily, against their targets; nothing unless the model translates.
  std::optional<TranslationScore> translations(const Model& model) const;

 private:
  int64_t sample_length() const { return std::min<int64_t>(recipe_.sequence, 128); }  // prompt included

  const Engine& engine_;
  const Recipe& recipe_;
  Trainer& trainer_;
  const TrainData& data_;
  std::filesystem::path tokenizer_;
  double best_product_ = 0;
};

// Who shows a run while it goes on; nobody, as it is.
class TrainScreen {
 public:
  virtual ~TrainScreen() = default;
  // Before the first step.
  struct Start {
    const Engine& engine;
    const Recipe& recipe;
    const Model& model;
    const TrainData& data;
    int64_t done = 0;  // steps
  };
  virtual void show_plan(const Start&, const TrainPlan&) {}
  virtual void show_step(const StepReport&, double /*operations per second*/) {}
  virtual void show_evaluation(const EvalResult&, bool /*best*/) {}
  virtual void show_samples(int64_t /*step*/, const std::vector<std::string>&) {}
  virtual void show_translations(const TranslationScore&) {}
  virtual void show_end(StopReason, const TrainCounters&, const std::filesystem::path& /*run*/) {}
  virtual void show_watched(const WatchEnd&, const std::filesystem::path& /*run*/) {}
};

}  // namespace qkv
