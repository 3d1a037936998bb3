// Everything a run keeps on disk. A process killed at any moment leaves a run that goes on from its newest checkpoint.
//
//   RUN/recipe.json                  the recipe as it runs, every default written out
//   RUN/prepared/                    tokenizer, token shards, config (prepare_run)
//   RUN/checkpoints/step-00001000/   checkpoint_files.h
//   RUN/last, RUN/best               links to checkpoints
//   RUN/log.jsonl, samples.jsonl     one object a line
//   RUN/events.out.tfevents.*        TensorBoard
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "train/trainer.h"

namespace qkv {

class RunFolder {
 public:
  static RunFolder create(const std::filesystem::path& run, const Recipe& recipe);  // an Error if it exists
  // An Error if there is none, or if another process has it open. What a killed one left half written is removed.
  static RunFolder open(const std::filesystem::path& run);
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;
  ~RunFolder();  // waits; a failure nobody asked for is said on stderr

  const Recipe& recipe() const;
  const std::filesystem::path& path() const;

  // Copies all and returns; a thread writes it, as soon as the save before is done. What fails there is an Error of the
  // next save() or wait(), with earlier checkpoints as they were; a weight that is not finite is one at once.
  void save(const Model& model, const Json& config, const Optimizer& optimizer, const TrainCounters& counters,
            bool best);
  void wait();
  // From now on only so many of the last ones stay, and the best.
  void keep_last(int64_t keep);

  // From the newest checkpoint that is whole; newer ones that are not are named on stderr. False: there is none.
  bool load_newest(Model& model, Optimizer& optimizer, TrainCounters& counters) const;
  // A run that goes on from this step does the later ones again: what was logged of them goes.
  void forget_after(int64_t step);

  void log(const Json& line);
  void scalars(int64_t step, const std::map<std::string, double>& values);
  void text_sample(int64_t step, const std::string& text);

 private:
  struct State;
  explicit RunFolder(const std::filesystem::path& run);

  std::unique_ptr<State> state_;  // the writing thread has its address
};

}  // namespace qkv
