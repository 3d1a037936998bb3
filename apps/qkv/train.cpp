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
#include "model/convert.h"
#include "model/initialise.h"
#include "recipes.h"
#include "train/checkpoint_files.h"
#include "train/prepare.h"
#include "train/run_folder.h"
#include "train/trainer.h"
#include "train_view.h"
#include "train_watch.h"

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
  qkv train world --watch --out my-world                    snapshots of how it learns, for  qkv movie my-world

RUN holds recipe.json, log.jsonl, TensorBoard events, samples.jsonl and checkpoints; RUN/best and RUN/last are models that
qkv and Hugging Face load. docs/training.md has all keys of a recipe.)";

struct Options {
  std::string recipe, out, from;
  std::vector<std::string> data, set;
  int threads = 0;
  bool resume = false, list = false, json = false, dry = false, watch = false;
};

volatile std::sig_atomic_t stop_asked = 0;
void ask_to_stop(int) {
  if (stop_asked != 0) std::_Exit(130);  // the second time it is meant
  stop_asked = 1;
}

Json recipe_of(const Options& options) {
  Json json = find_recipe(options.recipe);
  if (!options.data.empty()) json["data"]["files"] = options.data;
  if (!options.from.empty()) {
    json["tokenizer"] = {{"load", options.from}};
    json["model"] = {{"from", options.from}};
  }
  for (const std::string& assignment : options.set) set_value(json, assignment);
  return json;
}

// One rank's part of a run; the first one alone writes, and talks.
class TrainCommand {
 public:
  TrainCommand(const Options& options, Comm& comm)
      : options_(options),
        comm_(comm),
        engine_(kernels::best_table(), {.threads = options.threads}),
        recipe_(open_run()),
        prepared_(fs::path(options.out) / "prepared") {
    try {
      set_up();
    } catch (...) {  // there is nothing to go on with yet
      if (run_ && !options.resume) fs::remove_all(run_->path());
      throw;
    }
    if (options.resume) go_on();
  }

  void run() {
    std::optional<TrainView> view;
    if (run_) {
      view.emplace(engine_, recipe_, *trainer_, *data_, prepared_ / "tokenizer", options_.json);
      view->show_plan(*model_);
    }
    if (options_.dry) {
      if (run_ && !options_.resume) fs::remove_all(run_->path());
      return;
    }
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, ask_to_stop);
    if (run_ && (options_.watch || WatchFolder::exists(run_->path()))) {
      watch_.emplace(run_->path(), engine_, recipe_, *model_, *data_);
      watch_->begin(trainer_->counters());
    }
    TrainHooks hooks;
    hooks.stop = [] { return stop_asked != 0; };
    if (run_) {
      hooks.on_step = [&](const StepReport& report) { tell(*view, report); };
      hooks.on_evaluation = [&](const EvalResult& result, bool best) { tell(*view, result, best); };
    }
    hooks.on_save = [&](const TrainCounters& counters, bool best) { save(counters, best); };
    const TrainEnd end = trainer_->run(hooks, watch_ ? watch_->probe() : nullptr);
    if (!run_) return;
    run_->wait();
    view->show_end(end, run_->path());
    if (watch_) watch_->show_end(trainer_->counters(), options_.json);
  }

 private:
  // The first rank opens the folder; the others hear what is to be done.
  Recipe open_run() {
    std::string text;
    if (comm_.rank() == 0) {
      run_.emplace(options_.resume
                       ? RunFolder::open(options_.out)
                       : RunFolder::create(options_.out, read_recipe(recipe_of(options_), options_.recipe)));
      text = to_json(run_->recipe()).dump();
    }
    const std::vector<std::byte> said = comm_.all_gather(std::as_bytes(std::span(text))).front();
    return read_recipe(parse_json({reinterpret_cast<const char*>(said.data()), said.size()}, "recipe.json"),
                       "recipe.json");
  }

  void set_up() {
    if (run_) prepare();
    comm_.barrier();
    start_ = Checkpoint::open(prepared_ / "start");
    model_ = start_.model(engine_.device());
    choose_trainable(*model_, recipe_.frozen);
    const TokenIds& tokens = model_->spec().tokens;
    const std::optional<int32_t> mask = Tokenizer::load(prepared_ / "tokenizer").named().mask;
    data_ = TrainData::open(
        recipe_, prepared_,
        {.start = tokens.decoder_start.value_or(0), .mask = mask.value_or(-1), .vocabulary = model_->spec().vocabulary},
        model_->spec().context);
    trainer_.emplace(engine_, recipe_, *model_, *data_, comm_);
  }

  void prepare() {
    if (!fs::exists(prepared_)) prepare_run(recipe_, options_.from, prepared_, *engine_.exec().pool);
    const fs::path start = prepared_ / "start";
    if (fs::exists(start)) return;
    if (!options_.from.empty()) {
      convert_model(options_.from, start, {.dtype = "F32"});  // masters are f32
    } else {
      const Json config = parse_json(read_file(prepared_ / "config.json", 16 << 20), "config.json");
      write_new_model(start, config, {.seed = recipe_.seed}, *engine_.exec().pool);
    }
  }

  void go_on() {
    bool found = run_ && run_->load_newest(*model_, trainer_->optimizer(), trainer_->counters());
    found = comm_.all_gather(std::as_bytes(std::span(&found, 1))).front().front() != std::byte{0};
    if (found && !run_) {
      read_checkpoint(fs::path(options_.out) / "last", *model_, trainer_->optimizer(), trainer_->counters());
    }
    if (run_) run_->forget_after(trainer_->counters().step);
  }

  void tell(TrainView& view, const StepReport& report) {
    view.show_step(report);
    run_->log(view.log_line(report));
    run_->scalars(report.step + 1,
                  {{"loss", report.result.loss}, {"lr", report.lr}, {"grad_norm", report.result.grad_norm}});
    const TrainCounters& counters = trainer_->counters();
    if (watch_ && watch_->after_step(report, counters)) run_->log(watch_->log_line(counters));
  }

  void tell(TrainView& view, const EvalResult& result, bool best) {
    view.show_evaluation(result, best);
    run_->log(view.log_line(result));
    run_->scalars(result.step, {{"val_loss", result.loss}, {"bits_per_byte", result.bits_per_byte}});
    for (const std::string& sample : view.samples(*model_)) run_->text_sample(result.step, sample);
    if (const std::optional<TranslationScore> score = view.translations(*model_)) {
      run_->log({{"step", result.step}, {"bleu", score->bleu}, {"chrf", score->chrf}, {"translated", score->lines}});
      run_->scalars(result.step, {{"bleu", score->bleu}, {"chrf", score->chrf}});
    }
  }

  void save(const TrainCounters& counters, bool best) {
    trainer_->optimizer().gather_states();
    if (run_) {
      if (watch_) watch_->wait();  // a checkpoint never outlives the snapshots before it
      run_->save(*model_, start_.config, trainer_->optimizer(), counters, best);
      run_->keep_last(recipe_.checkpoint.keep);
    }
    trainer_->optimizer().drop_gathered();
  }

  const Options& options_;
  Comm& comm_;
  Engine engine_;
  std::optional<RunFolder> run_;  // of the first rank
  Recipe recipe_;
  fs::path prepared_;
  Checkpoint start_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<TrainData> data_;
  std::optional<Trainer> trainer_;
  std::optional<TrainWatch> watch_;  // of the first rank
};

void train(const Options& options) {
  QKV_CHECK(!options.out.empty(), "no folder for the run was named", Hint("say  --out RUN"));
  QKV_CHECK(options.resume == options.recipe.empty(),
            options.resume ? "--resume goes on with the run's own recipe, but '"
                           : "neither a recipe nor --resume was given ('",
            options.recipe, options.resume ? "' was given too" : "')", Hint("see  qkv train --help"));
  Comm& comm = world_comm();
  try {
    TrainCommand(options, comm).run();
  } catch (const std::exception& error) {
    if (comm.size() == 1) throw;
    std::cerr << "qkv: rank " << comm.rank() << ": " << error.what() << '\n';
    comm.end_all();
  }
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
  command->add_flag("--watch", options->watch,
                    "Keep small snapshots in RUN/watch for qkv movie; --resume goes on with it");
  command->add_flag("--plan", options->dry, "Print the plan and stop");
  command->add_flag("--list", options->list, "The recipes that ship");
  command->add_option("--threads", options->threads, "0: as many as there are")->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json, "Lines of JSON instead of a progress line");
  command->footer(kExamples);
  command->callback([options] { options->list ? list_recipes() : train(*options); });
}

}  // namespace qkv::app
