// What every command that runs a model has: the model, its tokenizer, the engine and the caches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/command.h"
#include "infer/generation_defaults.h"
#include "infer/runner.h"
#include "model/checkpoint/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::app {

struct LoadOptions {
  std::string model, dtype = "auto", cache = "auto";
  int threads = 0;
  int64_t context = 0;  // tokens of one text; 0: as many as the model was made for, at most kUsualContext
  static constexpr int64_t kUsualContext = 4096;
};

// The argument MODEL and --dtype, --cache, --context, --threads.
void add_load_options(Command command, LoadOptions& options);

// "f32", "bf16", or "auto": f32 if all weights are.
Precision precision_of(const std::string& dtype, const Model& model);

class Loaded {
 public:
  // With room in the caches for so many texts of a whole context at once. An Error says need and have if it does not
  // fit.
  explicit Loaded(const LoadOptions& options, int64_t texts = 1);
  // With the room that is asked for once the model is known: positions, sources and chunk.
  using RoomFor = std::function<RunOptions(const Loaded&)>;
  Loaded(const LoadOptions& options, const RoomFor& room);

  const std::string& path() const { return path_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelSpec& spec() const { return checkpoint_.spec; }
  const Model& model() const { return *model_; }
  const Engine& engine() const { return engine_; }
  Runner& runner() { return *runner_; }
  int64_t context() const { return context_; }  // tokens of one text, prompt included
  GenerationDefaults defaults() const;          // as the model's makers say
  bool translates() const { return spec().has_source(); }

  // Read when first asked for; an Error if the model comes without one.
  const Tokenizer& tokenizer();

 private:
  std::string path_;
  Checkpoint checkpoint_;
  Engine engine_;
  std::unique_ptr<Model> model_;
  int64_t context_ = 0;
  std::unique_ptr<Runner> runner_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace qkv::app
