// qkv train: from a recipe to a model, step by step; a killed run goes on where its last checkpoint was.
#include <fmt/format.h>

#include <csignal>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/progress.h"
#include "commands.h"
#include "kernels/tables.h"
#include "model/checkpoint.h"
#include "model/initialise.h"
#include "recipes.h"
#include "train/prepare.h"
#include "train/run_folder.h"
#include "train/trainer.h"
#include "train_view.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(Recipes that ship, also usable by name: qkv train --list

Examples:
  qkv train world --out my-world                            a small decoder on the built-in world
  qkv train shakespeare-char --data shakespeare.txt --out shakespeare
  qkv train translate --data en-de.tsv --out en-de          sentence pairs, source<TAB>target
  qkv train my-recipe.json --out run --set steps=2000 --set optimizer.kind=muon
  qkv train --resume --out run                              goes on after Ctrl-C, a crash or a power cut
  qkv train fine-tune.json --from MODEL --data notes.txt --out tuned

RUN holds recipe.json, log.jsonl, TensorBoard events, samples.jsonl and checkpoints; RUN/best and RUN/last are models that
qkv and Hugging Face load. docs/training.md has all keys of a recipe.)";

struct Options {
  std::string recipe, out, from;
  std::vector<std::string> data, set;
  int threads = 0;
  bool resume = false, list = false, json = false, dry = false;
};

volatile std::sig_atomic_t stop_asked = 0;
void ask_to_stop(int) {
  if (stop_asked != 0) std::_Exit(130);  // the second time it is meant
  stop_asked = 1;
}

Recipe recipe_of(const Options& options) {
  Json json = find_recipe(options.recipe);
  if (!options.data.empty()) json["data"]["files"] = options.data;
  if (!options.from.empty()) {
    json.erase("tokenizer");
    json["tokenizer"]["load"] = options.from;
    if (!json.contains("model")) json["model"] = {{"from", options.from}};
  }
  for (const std::string& assignment : options.set) set_value(json, assignment);
  return read_recipe(json, options.recipe);
}

// The model a run starts with: new weights, or another model's.
Checkpoint first_model(const RunFolder& run, const std::string& from, ThreadPool& pool) {
  if (!from.empty()) return Checkpoint::open(from);
  const fs::path folder = run.path() / "prepared" / "start";
  if (!fs::exists(folder)) {
    const Json config = parse_json(read_file(run.path() / "prepared" / "config.json", 16 << 20), "config.json");
    write_new_model(folder, config, {.seed = run.recipe().seed}, pool);
  }
  return Checkpoint::open(folder);
}

void train(const Options& options) {
  QKV_CHECK(!options.out.empty(), "no folder for the run was named", Hint("say  --out RUN"));
  QKV_CHECK(options.resume == options.recipe.empty(),
            options.resume ? "--resume goes on with the run's own recipe, but '"
                           : "neither a recipe nor --resume was given ('",
            options.recipe, options.resume ? "' was given too" : "')", Hint("see  qkv train --help"));
  RunFolder run = options.resume ? RunFolder::open(options.out) : RunFolder::create(options.out, recipe_of(options));
  const Recipe& recipe = run.recipe();
  const Engine engine(kernels::best_table(), {.threads = options.threads});
  const fs::path prepared = run.path() / "prepared";
  if (!fs::exists(prepared)) prepare_run(recipe, options.from, prepared, *engine.exec().pool);

  const Checkpoint start = first_model(run, options.from, *engine.exec().pool);
  const std::unique_ptr<Model> model = start.model(engine.device());
  choose_trainable(*model, recipe.frozen);
  const TokenIds& tokens = model->spec().tokens;
  const std::optional<int32_t> mask = Tokenizer::load(prepared / "tokenizer").named().mask;
  const auto data = TrainData::open(
      recipe, prepared,
      {.start = tokens.decoder_start.value_or(0), .mask = mask.value_or(-1), .vocabulary = model->spec().vocabulary},
      model->spec().context);
  Trainer trainer(engine, recipe, *model, *data);
  if (options.resume && run.load_newest(*model, trainer.optimizer(), trainer.counters())) {
    run.forget_after(trainer.counters().step);
  }
  TrainView view(engine, recipe, trainer, *data, prepared / "tokenizer", options.json);
  view.show_plan(*model);
  if (options.dry) return;

  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  std::signal(SIGUSR1, ask_to_stop);
  TrainHooks hooks;
  hooks.stop = [] { return stop_asked != 0; };
  hooks.on_step = [&](const StepReport& report) {
    view.show_step(report);
    run.log(view.log_line(report));
    run.scalars(report.step + 1,
                {{"loss", report.result.loss}, {"lr", report.lr}, {"grad_norm", report.result.grad_norm}});
  };
  hooks.on_evaluation = [&](const EvalResult& result, bool best) {
    view.show_evaluation(result, best);
    run.log(view.log_line(result));
    run.scalars(result.step, {{"val_loss", result.loss}, {"bits_per_byte", result.bits_per_byte}});
    for (const std::string& sample : view.samples(*model)) run.text_sample(result.step, sample);
  };
  hooks.on_save = [&](const TrainCounters& counters, bool best) {
    run.save(*model, start.config, trainer.optimizer(), counters, best);
    run.keep_last(recipe.checkpoint.keep);
  };
  const TrainEnd end = trainer.run(hooks);
  run.wait();
  view.show_end(end, run.path());
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a model from text or sentence pairs");
  const auto options = std::make_shared<Options>();
  command->add_option("RECIPE", options->recipe, "A recipe's name or file");
  command->add_option("--out", options->out, "The run's folder");
  command->add_option("--data", options->data, "Text files, or TSV of pairs, instead of the recipe's");
  command->add_option("--from", options->from, "A model folder to go on with: its weights, tokenizer and config");
  command->add_option("--set", options->set, "A key of the recipe by its path, KEY=VALUE; may be repeated")->take_all();
  command->add_flag("--resume", options->resume, "Go on with the run in --out");
  command->add_flag("--plan", options->dry, "Print the plan and stop");
  command->add_flag("--list", options->list, "The recipes that ship");
  command->add_option("--threads", options->threads, "0: as many as there are")->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json, "Lines of JSON instead of a progress line");
  command->footer(kExamples);
  command->callback([options] { options->list ? list_recipes() : train(*options); });
}

}  // namespace qkv::app
