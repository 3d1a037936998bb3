// qkv info: what a model is, drawn and counted.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>

#include "base/file.h"
#include "common/commands.h"
#include "model/checkpoint/checkpoint.h"
#include "model/describe/model_report.h"
#include "model/families/family.h"
#include "model/families/presets.h"
#include "model/quantized/quantized_names.h"

namespace qkv::app {
namespace {

struct InfoArguments {
  std::string model, preset;
  bool json = false, families = false;
};

// Bytes of each type in the file; no file, no types.
using Stored = std::map<std::string, int64_t>;

Stored stored_in(const Checkpoint& checkpoint) {
  Stored stored;
  std::map<std::string, std::string> panels;
  for (const NamedTensor& tensor : checkpoint.names->tensors()) {
    if (!tensor.panels.plain()) panels[tensor.name] = format_text(tensor.panels);
  }
  for (const StoredTensor& entry : checkpoint.file->entries()) {
    const auto own = panels.find(entry.name);
    stored[own == panels.end() ? entry.dtype : own->second] += static_cast<int64_t>(entry.bytes.size());
  }
  return stored;
}

ModelSpec spec_of(const InfoArguments& options, Stored& stored) {
  if (!options.preset.empty()) {
    return read_spec(Config(preset_config(options.preset), "preset " + options.preset));
  }
  const std::filesystem::path path = options.model;
  if (path.extension() == ".json") {
    return read_spec(Config(parse_json(read_file(path, kLargestConfig), options.model), options.model));
  }
  const Checkpoint checkpoint = Checkpoint::open(path);
  stored = stored_in(checkpoint);
  return checkpoint.spec;
}

void list_families(bool as_json) {
  Json list = Json::object();
  for (const Family* family : all_families()) {
    list[family->name] = family->known_as;
    if (!as_json) std::cout << fmt::format("  {:<12} {}\n", family->name, family->known_as);
  }
  if (as_json) std::cout << list.dump(2) << '\n';
}

void info(const InfoArguments& options) {
  if (options.families) return list_families(options.json);
  Stored stored;
  const ModelSpec spec = spec_of(options, stored);
  const ModelSummary summary = summarise(spec);
  if (options.json) {
    auto json = report_json(spec, summary);
    if (!stored.empty()) json["stored_bytes"] = stored;
    std::cout << json_text(json) << '\n';
    return;
  }
  std::cout << report_text(spec, summary);
  if (stored.empty()) return;
  std::cout << "\nStored as";
  for (const auto& [type, bytes] : stored) {
    std::cout << fmt::format("  {} {:.2f} MB", type, static_cast<double>(bytes) / 1e6);
  }
  std::cout << '\n';
}

}  // namespace

void add_info(Command app) {
  const Command command =
      app.add_command("info", "Show what a model is: a picture, its parameters, the memory it needs");
  const auto options = std::make_shared<InfoArguments>();
  std::string presets;
  for (const std::string_view name : preset_names()) presets += "\n  " + std::string(name);
  const Command what = command.one_of();
  what.add_model("MODEL", options->model,
                 "A Hugging Face folder, a GGUF file, a built-in model (qkv models), or a config.json alone");
  what.add_option("--preset NAME", options->preset, "A well-known model by name; needs no weights")
      .known(preset_names());
  what.add_flag("--families", options->families, "The families that can be read, and the models they are known by");
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(
      "Examples:\n  qkv info tests/golden/gemma3\n  qkv info --preset deepseek-v3\n  qkv info --families\n\nPresets:" +
      presets);
  command.callback([options] { info(*options); });
}

}  // namespace qkv::app
