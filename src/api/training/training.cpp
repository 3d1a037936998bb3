// qkv::train: a recipe from its name to its model.
#include <qkv/train.h>

#include "api/inside.h"
#include "api/training/recipes.h"
#include "api/training/train_run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/progress.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "open/builtin_models.h"

namespace qkv::v1 {
namespace {

Json recipe_of(const TrainOptions& options) {
  Json recipe =
      options.recipe.starts_with('{') ? parse_json(options.recipe, "the recipe") : find_recipe(options.recipe);
  return changed_recipe(
      std::move(recipe),
      {.files = options.data, .from = options.from.empty() ? "" : find_model(options.from), .set = options.set});
}

StepReport outer(const qkv::StepReport& report, int64_t of) {
  return {.step = report.step + 1,
          .of = of,
          .loss = report.result.loss,
          .lr = report.lr,
          .grad_norm = report.result.grad_norm,
          .tokens = report.result.tokens,
          .seconds = report.seconds};
}

}  // namespace

Trained train(const TrainOptions& options) {
  QKV_CHECK(!options.out.empty(), "no folder for the run was named", Hint("set out"));
  QKV_CHECK(options.resume == options.recipe.empty(),
            options.resume ? "a run that goes on has its own recipe, but one was given: "
                           : "neither a recipe nor a run to resume was named",
            options.recipe, Hint("give one of the two"));
  QKV_CHECK(!options.resume || (options.data.empty() && options.from.empty()), "a run that goes on has its own ",
            options.data.empty() ? "model to start from, but another was given: " : "data, but others were given: ",
            options.data.empty() ? options.from : options.data.front(), Hint("leave it out, or start another run"));
  const ProgressSilence quiet;  // on_step says how far it is
  bool stop = false;
  int64_t steps = 0;
  TrainObserver observer;
  observer.on_step = [&](const qkv::StepReport& report, const TrainCounters&) {
    if (options.on_step && !options.on_step(outer(report, steps))) stop = true;
  };
  observer.on_evaluation = [&](const EvalResult& result, bool best) {
    if (!options.on_evaluation) return;
    options.on_evaluation({.step = result.step,
                           .loss = result.loss,
                           .perplexity = result.perplexity,
                           .bits_per_byte = result.bits_per_byte,
                           .best = best});
  };
  TrainRun run({.recipe = [&] { return recipe_of(options); },
                .named = options.recipe.starts_with('{') ? "the recipe" : options.recipe,
                .out = options.out,
                .device = inner_options({.device = options.device}).device,
                .threads = options.threads,
                .resume = options.resume,
                .set = options.resume ? options.set : std::vector<std::string>(),
                .stop = [&] { return stop; },
                .observer = observer},
               self_comm());
  steps = run.recipe().steps;
  const std::optional<StopReason> end = run.run();
  const TrainCounters& counters = run.counters();
  const std::filesystem::path out = options.out;
  return {.steps = counters.step,
          .tokens = counters.tokens,
          .best_loss = counters.best,
          .finished = end == StopReason::finished,
          .best = (out / (counters.best_step >= 0 ? "best" : "last")).string(),
          .last = (out / "last").string()};
}

std::vector<std::string> recipes() {
  return recipe_names();
}

void new_model(const std::string& preset_or_config, const std::string& folder, uint64_t seed) {
  const Json config = preset_or_config.starts_with('{') ? parse_json(preset_or_config, "the config")
                      : is_file(preset_or_config)
                          ? parse_json(read_text(preset_or_config, kLargestConfig), preset_or_config)
                          : preset_config(preset_or_config);
  ThreadPool pool;
  write_new_model(folder, config, {.seed = seed}, pool);
}

}  // namespace qkv::v1
