// qkv info: what a model is, drawn and counted.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/file.h"
#include "commands.h"
#include "model/checkpoint.h"
#include "model/model_report.h"
#include "model/presets.h"

namespace qkv::app {
namespace {

constexpr size_t kLargestConfig = 16 << 20;

struct Options {
  std::string model, preset;
  bool json = false;
};

ModelSpec spec_of(const Options& options) {
  if (!options.preset.empty()) {
    return read_spec(Config(preset_config(options.preset), "preset " + options.preset));
  }
  const std::filesystem::path path = options.model;
  if (path.extension() == ".json") {
    return read_spec(Config(parse_json(read_file(path, kLargestConfig), options.model), options.model));
  }
  return Checkpoint::open(path).spec;
}

void info(const Options& options) {
  const ModelSpec spec = spec_of(options);
  const ModelSummary summary = summarise(spec);
  std::cout << (options.json ? report_json(spec, summary).dump(2) + "\n" : report_text(spec, summary));
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Show what a model is: a picture, its parameters, the memory it needs");
  const auto options = std::make_shared<Options>();
  std::string presets;
  for (const std::string_view name : preset_names()) presets += "\n  " + std::string(name);
  CLI::Option_group* what = command->add_option_group("what", "One of these");
  what->add_option("MODEL", options->model, "A Hugging Face folder, a .gguf file, or a config.json alone");
  what->add_option("--preset", options->preset, "A well-known model by name; needs no weights");
  what->require_option(1);
  command->add_flag("--json", options->json, "Print it as JSON");
  command->footer("Examples:\n  qkv info tests/golden/gemma3\n  qkv info --preset deepseek-v3\n\nPresets:" + presets);
  command->callback([options] { info(*options); });
}

}  // namespace qkv::app
