// qkv new: a model with random weights, as its family was published to start.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/progress.h"
#include "common/commands.h"
#include "model/families/presets.h"
#include "model/initialise.h"

namespace qkv::app {
namespace {

struct NewArguments {
  std::string out, preset, spec, dtype = "f32";
  uint64_t seed = 0;
  int threads = 0;
};

void make_new(const NewArguments& options) {
  const Json config = options.spec.empty() ? preset_config(options.preset)
                                           : parse_json(read_text(options.spec, kLargestConfig), options.spec);
  std::unique_ptr<Progress> progress;
  int64_t bytes = 0;
  ThreadPool pool(options.threads);
  write_new_model(options.out, config, {.seed = options.seed, .dtype = options.dtype == "bf16" ? "BF16" : "F32"}, pool,
                  [&](int64_t done, int64_t of) {
                    if (!progress) progress = std::make_unique<Progress>("writing " + options.out, of);
                    progress->update(done);
                    bytes = of;
                  });
  if (progress) progress->finish();
  std::cout << fmt::format("{}: {:.1f} MB of weights in {}; see  qkv info {}\n", options.out,
                           static_cast<double>(bytes) / 1e6, options.dtype, options.out);
}

}  // namespace

void add_new(Command app) {
  const Command command = app.add_command("new", "Write a model with random weights, ready to train");
  const auto options = std::make_shared<NewArguments>();
  command.add_output_folder("--out DIR", options->out, "The folder to make; it must not exist yet").required();
  const Command what = command.one_of();
  what.add_option("--preset NAME", options->preset, "A well-known model by name; qkv info --help lists them")
      .known(preset_names());
  what.add_option("--spec FILE", options->spec, "A config.json as Hugging Face writes it");
  command.add_option("--seed", options->seed, "The same seed gives the same bits on every machine").required();
  command.add_option("--dtype", options->dtype, "How weights are stored; bf16 rounds the same numbers")
      .one_of({"f32", "bf16"})
      .show_default();
  command.add_threads(options->threads);
  command.footer(
      "Examples:\n  qkv new --preset gpt2 --seed 1 --out my-gpt2\n"
      "  qkv new --spec config.json --seed 7 --dtype bf16 --out my-model");
  command.callback([options] { make_new(*options); });
}

}  // namespace qkv::app
