// What a person sees of a training run: the plan, a line that moves, evaluations and samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "train/trainer.h"

namespace qkv::app {

struct TranslationScore {
  double bleu = 0, chrf = 0;
  int64_t lines = 0;
};

// An Error with need and have if a run does not fit into the memory of its device, or its checkpoints into the host's.
void check_memory(const Trainer::Memory& memory, const Device& device);

class TrainView {
 public:
  enum class Show { lines, json, nothing };
  TrainView(const Engine& engine, const Recipe& recipe, Trainer& trainer, const TrainData& data,
            std::filesystem::path tokenizer, Show show);

  // An Error for what the run would refuse only later: prompts without room, data without targets.
  void check(const Model& model) const;
  // Parameters, tokens, memory by part.
  void show_plan(const Model& model, const Trainer::Memory& memory);
  void show_step(const StepReport& report);
  void show_evaluation(const EvalResult& result, bool best);
  void show_end(StopReason end, const std::filesystem::path& run);

  Json log_line(const StepReport& report) const;
  Json log_line(const EvalResult& result) const;

  // Texts the model writes now, from the recipe's prompts or from nothing.
  std::vector<std::string> samples(const Model& model);
  // Some held-out sources, translated greedily, against their targets; nothing unless the model translates.
  std::optional<TranslationScore> translations(const Model& model);

 private:
  int64_t sample_length() const { return std::min<int64_t>(recipe_.sequence, 128); }  // prompt included
  double rate(const StepReport& report) const { return trainer_.operations_per_step() / report.seconds; }

  const Engine& engine_;
  const Recipe& recipe_;
  Trainer& trainer_;
  const TrainData& data_;
  std::filesystem::path tokenizer_;
  Show show_;
  std::optional<Progress> progress_;  // for people
  double best_product_ = 0;           // operations per second of one large matmul, measured at the start
};

}  // namespace qkv::app
