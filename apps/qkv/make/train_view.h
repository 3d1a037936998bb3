// What a person sees of a training run: the plan, a line that moves, evaluations and samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/training/train_reports.h"
#include "base/progress.h"

namespace qkv::app {

class TrainView : public TrainScreen {
 public:
  enum class Show { lines, json };
  explicit TrainView(Show show) : show_(show) {}

  void show_plan(const Start& start, const TrainPlan& plan) override;
  void show_step(const StepReport& report, double rate) override;
  void show_evaluation(const EvalResult& result, bool best) override;
  void show_samples(int64_t step, const std::vector<std::string>& texts) override;
  void show_translations(const TranslationScore& score) override;
  void show_end(StopReason end, const TrainCounters& counters, const std::filesystem::path& run) override;
  void show_watched(const WatchEnd& watched, const std::filesystem::path& run) override;

 private:
  Show show_;
  std::optional<Progress> progress_;  // for people
  double best_product_ = 0;           // operations per second of one large matmul
};

}  // namespace qkv::app
