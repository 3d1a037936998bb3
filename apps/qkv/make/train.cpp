// qkv train: from a recipe to a model, step by step; a killed run goes on where its last checkpoint was.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "api/training/recipes.h"
#include "api/training/train_run.h"
#include "base/error.h"
#include "common/commands.h"
#include "common/compute_options.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "make/train_serve.h"
#include "make/train_view.h"

namespace qkv::app {
namespace {

constexpr const char* kTrainExamples = R"(qkv train --list shows the built-in recipes.

Examples:
  qkv train demo --out my-run                               a small decoder on the built-in world, in two minutes
  qkv train world --out my-world --device cuda              the stories of the world in English and Chinese, on a GPU
  qkv train text --data my-book.txt --out my-book           your own English or Chinese text, minutes on two cores
  qkv train shakespeare-char --data shakespeare.txt --out shakespeare
  qkv train translate --data en-de.tsv --out en-de          sentence pairs, source<TAB>target
  qkv train my-recipe.json --out run --set steps=2000 --set optimizer.kind=muon
  qkv train --resume --out run                              continue after Ctrl-C, a crash or a power cut
  qkv train --resume --out run --set steps=4000             with more steps than it had
  qkv train fine-tune.json --from MODEL --data notes.txt --out tuned
  qkv train demo --watch --out my-run                       snapshots for qkv movie
  qkv train demo --serve --out my-run                       watch it learn in a browser

RUN holds recipe.json, log.jsonl, TensorBoard events, samples.jsonl and checkpoints; RUN/best and RUN/last are models that
qkv and Hugging Face load. docs/training.md has all keys of a recipe.)";

struct TrainArguments {
  std::string recipe, out, from;
  std::vector<std::string> data, set;
  ComputeOptions compute;
  bool resume = false, from_scratch = false, list = false, json = false, dry = false, watch = false, serve = false;
  int port = 8080;
};

// The command line of the same training, without the page and with snapshots for it.
std::vector<std::string> train_words(const TrainArguments& options) {
  std::vector<std::string> words{"train"};
  if (!options.recipe.empty()) words.push_back(options.recipe);
  words.insert(words.end(), {"--watch", "--out", options.out, "--device", options.compute.device_name});
  for (const std::string& file : options.data) words.insert(words.end(), {"--data", file});
  for (const std::string& change : options.set) words.insert(words.end(), {"--set", change});
  if (!options.from.empty()) words.insert(words.end(), {"--from", options.from});
  if (options.compute.threads > 0) words.insert(words.end(), {"--threads", std::to_string(options.compute.threads)});
  for (const auto& [word, given] :
       {std::pair{"--resume", options.resume}, {"--from-scratch", options.from_scratch}, {"--json", options.json}}) {
    if (given) words.emplace_back(word);
  }
  return words;
}

void list_recipes(bool json) {
  if (json) {
    Json all = Json::array();
    for (const auto& [name, text] : shipped_recipes()) {
      all.push_back({{"name", name}, {"about", parse_json(text, name).value("about", "")}});
    }
    std::cout << json_text(all) << '\n';
    return;
  }
  for (const auto& [name, text] : shipped_recipes()) {
    const std::vector<std::string> about =
        wrap(parse_json(text, name).value("about", ""), std::max(terminal_columns() - 21, 20));
    for (size_t i = 0; i < about.size(); ++i) {
      std::cout << fmt::format("  {:<18} {}\n", i == 0 ? name : "", about[i]);
    }
  }
}

void train(const TrainArguments& options) {
  QKV_CHECK(!options.out.empty(), "no folder for the run was named", Hint("say  --out RUN"));
  QKV_CHECK(options.resume == options.recipe.empty(),
            options.resume ? "--resume goes on with the run's own recipe, but '"
                           : "neither a recipe nor --resume was given ('",
            options.recipe, options.resume ? "' was given too" : "')", Hint("see  qkv train --help"));
  QKV_CHECK(options.resume || !options.from_scratch, "--from-scratch begins a run again, but there is no --resume",
            Hint("leave it out: a new run begins at its first step"));
  for (const auto& [option, given] : {std::pair{"--data", !options.data.empty()}, {"--from", !options.from.empty()}}) {
    QKV_CHECK(!options.resume || !given, "--resume goes on with what the run was prepared from, but ", option,
              " was given too", Hint("start another run; --set may change steps, schedule, checkpoint and the like"));
  }
  Comm& comm = world_comm();
  if (options.serve) {
    QKV_CHECK(comm.size() == 1, "--serve shows a training of one process, but there are ", comm.size(),
              Hint("leave it out, and see the run later:  qkv movie ", options.out));
    QKV_CHECK(!options.dry, "--plan trains nothing that --serve could show", Hint("give one of the two"));
    return serve_training(train_words(options), options.out, options.compute, options.port);
  }
  TrainView view(options.json ? TrainView::Show::json : TrainView::Show::lines);
  const InterruptWatch interrupt({SIGINT, SIGTERM, SIGUSR1},  // job queues send the other two
                                 InterruptWatch::From::first_look);
  try {
    TrainRun({.recipe =
                  [&] {
                    return changed_recipe(find_recipe(options.recipe),
                                          {.files = options.data, .from = options.from, .set = options.set});
                  },
              .named = options.recipe,
              .out = options.out,
              .device = options.compute.device(),
              .threads = options.compute.threads,
              .resume = options.resume,
              .from_scratch = options.from_scratch,
              .set = options.resume ? options.set : std::vector<std::string>(),
              .dry = options.dry,
              .watch = options.watch,
              .stop = [&] { return interrupt.seen(); },
              .screen = &view},
             comm)
        .run();
  } catch (const std::exception& error) {
    if (comm.size() == 1) throw;
    std::cerr << "qkv: rank " << comm.rank() << ": " << error.what() << '\n';
    comm.abort_all();
  }
}

}  // namespace

void add_train(Command app) {
  const Command command = app.add_command("train", "Train a model from text or sentence pairs");
  const auto options = std::make_shared<TrainArguments>();
  command.add_option("RECIPE", options->recipe, "A recipe's name or file").known(recipe_names());
  command.add_option("--out DIR", options->out, "The run's folder");
  command.add_option("--data FILE", options->data,
                     "Text files, or TSV of sentence pairs, instead of the recipe's data");
  command.add_model("--from MODEL", options->from, "A model folder to start from: its weights, tokenizer and config");
  command.add_option("--set KEY=VALUE", options->set,
                     "Change a key of the recipe, as schedule.warmup=20; may be repeated. With --resume: a key that "
                     "does not change what was prepared, as steps=2000");
  command.add_flag("--resume", options->resume, "Continue the run in --out");
  command.add_flag("--from-scratch", options->from_scratch,
                   "With --resume: begin at step 0; what the run has is kept aside in RUN/before-1");
  command.add_flag("--watch", options->watch, "Keep small snapshots in the run for qkv movie; --resume continues them");
  command.add_flag("--serve", options->serve, "Show it on a page while it trains, as --watch does afterwards");
  command.add_option("--port", options->port, "Port of that page; 0 takes any that is free")
      .between(0, 65535)
      .show_default()
      .needs(command.option("--serve"));
  command.add_flag("--plan", options->dry, "Print size, memory and expected time, or what would be refused, and stop");
  command.add_flag("--list", options->list, "List the built-in recipes");
  add_compute_options(command, options->compute);
  command.add_flag("--json", options->json, "Print lines of JSON, and nothing else");
  command.footer(kTrainExamples);
  command.callback([options] { options->list ? list_recipes(options->json) : train(*options); });
}

}  // namespace qkv::app
