// qkv models: the models that ship with the program.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "base/file_manifest.h"
#include "base/json.h"
#include "base/path.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "model/checkpoint/checkpoint.h"
#include "model/weight_list.h"
#include "open/builtin_models.h"
#include "see/movie_report.h"

namespace qkv::app {
namespace {

constexpr const char* kModelsHelp =
    R"(Wherever a command takes a MODEL, such a name will do. A file or folder of the same name comes first, with a note;
builtin:NAME is always the built-in model.

Examples:
  qkv models
  qkv run world "Once upon a time"
  qkv look world "The cat sat on the mat"
  qkv movie world                               how it learnt
  qkv models --pack my-run --out my-model       a run of qkv train --watch as such a folder: weights in bf16, its movie)";

struct ModelsArguments {
  std::string run, out;
  bool json = false;
};

int64_t parameters_of(const ModelSpec& spec) {
  int64_t all = 0;
  for (const WeightSpec& weight : weight_list(spec)) all += weight.shape.count();
  return all;
}

int64_t bytes_below(const std::filesystem::path& folder) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

// What is known without the files, and of the files where they are good.
nlohmann::ordered_json model_json(const BuiltinModel& model) {
  nlohmann::ordered_json json{{"name", model.name},
                              {"about", model.about},
                              {"languages", model.languages},
                              {"path", model.folder().string()},
                              {"made_with", model.how_made()}};
  try {
    check_builtin(model);
    const ModelSpec spec = Checkpoint::open(model.folder()).spec;
    json["kind"] = name_of(spec.kind);
    json["parameters"] = parameters_of(spec);
    json["bytes"] = bytes_below(model.folder());
    json["movie"] = is_there(model.folder() / "movie.json");
  } catch (const Error& error) {
    json["problem"] = error.message();
  }
  return json;
}

void list_models(bool as_json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const BuiltinModel& model : builtin_models()) all.push_back(model_json(model));
  if (as_json) {
    std::cout << json_text(all) << '\n';
    return;
  }
  const int columns = std::max(terminal_columns(), 40);
  for (const nlohmann::ordered_json& model : all) {
    const auto text = [&](const char* key) { return model[key].get<std::string>(); };
    std::cout << inked(Ink::bold, text("name")) << '\n' << wrapped(text("about"), columns, 2);
    if (model.contains("problem")) {
      std::cout << wrapped(text("problem"), columns, 2);
    } else {
      std::cout << fmt::format("  {}, {:.2f} M parameters, {:.1f} MB, {}\n", text("kind"),
                               model["parameters"].get<double>() / 1e6, model["bytes"].get<double>() / 1e6,
                               text("languages"));
    }
    std::cout << wrapped("made with  " + text("made_with"), columns, 2);
  }
}

}  // namespace

void add_models(Command app) {
  const Command command = app.add_command("models", "The models that ship, to be used by name");
  const auto options = std::make_shared<ModelsArguments>();
  command.add_flag("--json", options->json, "Print the list as JSON, and nothing else");
  const Option run = command.add_option("--pack RUN", options->run, "Make such a model of a finished run of qkv train");
  run.needs(
      command.add_output_folder("--out DIR", options->out, "The folder to make; it must not exist yet").needs(run));
  command.footer(kModelsHelp);
  command.callback([options] {
    if (options->run.empty()) return list_models(options->json);
    pack_builtin(options->run, options->out, packed_movie(options->run));
    std::cout << fmt::format("{} is written: {:.2f} MB\n", options->out,
                             static_cast<double>(bytes_below(options->out)) / 1e6);
  });
}

}  // namespace qkv::app
