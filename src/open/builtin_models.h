// The models that ship with the program, by name.
//
//   models/NAME/          of the source tree, or share/qkv/models/NAME beside the installed program
//     config.json, tokenizer.json, model.safetensors    a Hugging Face folder in bf16
//     movie.json, recipe.json                           how it learnt, and from what
//     manifest.json                                     size and SHA-256 of these
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct BuiltinModel {
  std::string_view name;
  std::string_view about;      // what it is for
  std::string_view languages;  // "en zh"

  // Two shell commands, joined by "&&". A recipe of the same name ships.
  std::string how_made() const;
  // Where it should be. It may be missing or damaged.
  std::filesystem::path folder() const;
};

std::span<const BuiltinModel> builtin_models();
std::vector<std::string> builtin_model_names();

// An Error that says how to make it again unless the model is there as it was written.
void check_builtin(const BuiltinModel& model);

// The path of a model a user names: a path that exists, the name of a built-in model, or builtin:NAME, which no path
// hides. An Error with the built-in names if it is none of these; what looks like a path is left to who opens it.
std::string find_model(const std::string& path_or_name);

// The same where other words may stand as well: what names no model is returned as it is.
std::string find_model_or_other(const std::string& word);

// Puts a run that qkv train finished into a folder as above, in bf16. `movie`: the text of movie.json; empty for none.
void pack_builtin(const std::filesystem::path& run, const std::filesystem::path& out, const std::string& movie);

}  // namespace qkv
