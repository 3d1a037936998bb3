#include "open/builtin_models.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/json.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/program_path.h"
#include "model/checkpoint/convert.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExact = "builtin:";

constexpr BuiltinModel kBuiltinModels[] = {
    {.name = "world",
     .about = "Decoder-only: stories, dialogue, sums, questions about a text. Its heads have roles to be found",
     .languages = "en zh"},
    {.name = "translator",
     .about = "Encoder-decoder: translates the world's sentences both ways. Its cross-attention aligns words",
     .languages = "en zh"},
    {.name = "experts", .about = "Mixture of experts: which expert a token visits, and why", .languages = "en"},
    {.name = "world-2l",
     .about = "Two layers of attention alone, for circuits: a previous-token head and an induction head that reads it",
     .languages = "en zh"},
};

// The folder of what this code is a part of: the program, or libqkv.so in someone else's.
fs::path own_folder() {
  const fs::path program = program_path();
  Dl_info own = {}, started = {};  // of a program, dladdr knows only what it was called as
  if (dladdr(&kBuiltinModels, &own) == 0 || own.dli_fname == nullptr) return program.parent_path();
  const bool known = dladdr(reinterpret_cast<const void*>(getauxval(AT_ENTRY)), &started) != 0;
  if (known && started.dli_fbase == own.dli_fbase) return program.parent_path();
  std::error_code failed;
  const fs::path library = fs::canonical(own.dli_fname, failed);
  return failed ? program.parent_path() : library.parent_path();
}

// The folder of all of them. QKV_MODELS is for tests and packagers.
fs::path models_folder() {
  if (const char* said = std::getenv("QKV_MODELS"); said != nullptr && *said != '\0') return said;
  const fs::path own = own_folder();
  QKV_CHECK(!own.empty(), "the models that ship lie beside the program, but the system does not say where that is",
            Hint("mount /proc, or set QKV_MODELS to their folder"));
  // PREFIX/bin, PREFIX/lib, PREFIX/lib/x86_64-linux-gnu; build/PRESET/bin or lib
  for (const fs::path& prefix : {own.parent_path(), own.parent_path().parent_path()}) {
    const fs::path installed = prefix / "share" / "qkv" / "models";
    if (is_folder(installed)) return installed;
  }
  return own.parent_path().parent_path().parent_path() / "models";
}

const BuiltinModel* builtin_named(std::string_view name) {
  for (const BuiltinModel& model : kBuiltinModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

std::string checked_path(const BuiltinModel& model) {
  check_builtin(model);
  return model.folder().string();
}

[[noreturn]] void fail_unknown(const std::string& what, std::string_view name) {
  std::vector<std::string_view> known;
  std::string all;
  for (const BuiltinModel& model : kBuiltinModels) {
    known.push_back(model.name);
    all += (all.empty() ? "" : ", ") + std::string(model.name);
  }
  const std::string near = nearest_key(name, known);
  QKV_FAIL(what, near.empty() ? Hint("the built-in models are ", all)
                              : Hint("did you mean '", near, "'? The built-in models are ", all));
}

enum class Unknown : uint8_t { refused, kept };

std::string find(const std::string& word, Unknown unknown) {
  if (word.starts_with(kExact)) {
    const std::string_view name = std::string_view(word).substr(kExact.size());
    if (const BuiltinModel* model = builtin_named(name)) return checked_path(*model);
    fail_unknown("there is no built-in model " + printable(name), name);
  }
  const BuiltinModel* model = builtin_named(word);
  if (is_there(word)) {
    if (model != nullptr) {
      std::cerr << "qkv: note: " << word << " is what is here under that name; the built-in model is  " << kExact
                << word << '\n';
    }
    return word;
  }
  if (model != nullptr) return checked_path(*model);
  if (unknown == Unknown::refused && !word.empty() && word.find('/') == std::string::npos) {
    fail_unknown("there is no such file or folder and no built-in model: " + printable(word), word);
  }
  return word;
}

}  // namespace

std::span<const BuiltinModel> builtin_models() {
  return kBuiltinModels;
}

std::vector<std::string> builtin_model_names() {
  std::vector<std::string> names;
  for (const BuiltinModel& model : kBuiltinModels) names.emplace_back(model.name);
  return names;
}

fs::path BuiltinModel::folder() const {
  return models_folder() / name;
}

std::string BuiltinModel::how_made() const {
  const std::string run = std::string(name) + "-run";
  return "qkv train " + std::string(name) + " --watch --out " + run + " && qkv models --pack " + run + " --out " +
         folder().string();
}

void check_builtin(const BuiltinModel& model) {
  const fs::path folder = model.folder();
  const Hint missing("make it:  ", model.how_made());
  QKV_CHECK(is_there(folder / kManifest), "the built-in model ", model.name, " is not in ", folder.string(), missing);
  const Hint damaged("the built-in model ", model.name, " is damaged: remove ", folder.string(),
                     " and put it back (git checkout, or the package), or make it again:  ", model.how_made());
  check_files(folder, read_manifest(folder, damaged), damaged);
}

std::string find_model(const std::string& path_or_name) {
  return find(path_or_name, Unknown::refused);
}

std::string find_model_or_other(const std::string& word) {
  return find(word, Unknown::kept);
}

void pack_builtin(const fs::path& run, const fs::path& out, const std::string& movie) {
  const fs::path best = run / "best", recipe = run / "recipe.json";
  AtomicFolder made(out);
  const fs::path converted = made.path() / "converted";
  convert_model(is_there(best) ? best : run / "last", converted,
                {.to = ConvertOptions::To::hugging_face, .dtype = "BF16"});
  for (const fs::path& file : folder_entries(converted)) fs::rename(file, made.path() / file.filename());
  fs::remove(converted);
  fs::copy_file(recipe, made.path() / "recipe.json");
  if (!movie.empty()) write_file_atomic(made.path() / "movie.json", std::as_bytes(std::span(movie)));
  write_manifest(made.path());
  made.commit();
}

}  // namespace qkv
