// The folder of a training run. A process killed at any moment leaves a run that resumes from its newest checkpoint.
//
//   RUN/recipe.json                  the recipe with all defaults filled in
//   RUN/prepared/                    tokenizer, token shards, the model at its start (prepare_run)
//   RUN/checkpoints/step-00001000/   checkpoint_files.h
//   RUN/last, RUN/best               links to checkpoints
//   RUN/log.jsonl, samples.jsonl     one object per line
//   RUN/before-1/                    what the run had before it was begun again
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
  // An Error if there is none or another process has it open. Removes half-written files of a killed process.
  static RunFolder open(const std::filesystem::path& run);
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;
  ~RunFolder();  // waits for the writer; its failure, if not yet reported, goes to stderr

  const Recipe& recipe() const;
  void set_recipe(const Recipe& recipe);
  const std::filesystem::path& path() const;

  // Copies everything and returns; a thread writes the checkpoint after the previous save is done. A write failure is
  // thrown by the next save() or wait() and leaves earlier checkpoints intact; a weight that is not finite throws here.
  void save(const Model& model, const Json& config, const Optimizer& optimizer, const TrainCounters& counters,
            bool best);
  void wait();
  // From now on only the last `keep` checkpoints and the best are kept.
  void keep_last(int64_t keep);

  // Loads the newest intact checkpoint; damaged newer ones are named on stderr. False if the run has none yet; an Error
  // if it has some but none can be read.
  bool load_newest(Model& model, Optimizer& optimizer, TrainCounters& counters) const;
  bool has_checkpoints() const;  // or a link to one
  // Moves all but the recipe and what was prepared to RUN/before-N, which is returned: the run begins again.
  std::filesystem::path set_aside();
  // Removes what was logged after this step: a resumed run does those steps again.
  void remove_after(int64_t step);

  void log(const Json& line);
  void scalars(int64_t step, const std::map<std::string, double>& values);
  void text_sample(int64_t step, const std::string& text);

 private:
  struct State;
  explicit RunFolder(const std::filesystem::path& run);

  std::unique_ptr<State> state_;  // at a fixed address, for the writing thread
};

}  // namespace qkv
