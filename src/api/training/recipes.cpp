#include "api/training/recipes.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"

namespace qkv {

Json find_recipe(const std::string& name_or_file) {
  for (const auto& [name, text] : shipped_recipes()) {
    if (name == name_or_file) return parse_json(text, name);
  }
  if (is_file(name_or_file)) {
    return parse_json(read_file(name_or_file, 1 << 20), name_or_file);
  }
  std::vector<std::string_view> known;
  std::string all;
  for (const auto& [name, text] : shipped_recipes()) {
    known.push_back(name);
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  const std::string near = nearest_key(name_or_file, known);
  QKV_FAIL("there is no recipe and no file ", printable(name_or_file),
           near.empty() ? Hint("the recipes that ship are ", all) : Hint("did you mean '", near, "'? There are ", all));
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : shipped_recipes()) names.emplace_back(name);
  return names;
}

}  // namespace qkv
