// What a command line changes about a recipe.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/printable.h"
#include "train/recipe.h"

namespace qkv {

void set_value(Json& recipe, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  QKV_CHECK(equals != std::string::npos && equals > 0, "--set ", printable(assignment), " has no value",
            Hint("write it as  --set optimizer.decay=0.01"));
  const std::string path = assignment.substr(0, equals), value = assignment.substr(equals + 1);
  // The whole recipe may nest as deep as a file of one.
  const auto parts = 1 + std::count(path.begin(), path.end(), '.');
  const JsonLimits limits;
  QKV_CHECK(parts < limits.depth, "--set ", printable(path), " has ", parts, " parts but a recipe nests at most ",
            limits.depth, " levels deep", Hint("see docs/training.md"));
  Json* at = &recipe;
  for (size_t first = 0; first <= path.size();) {
    const size_t dot = std::min(path.find('.', first), path.size());
    QKV_CHECK(at->is_object() || at->is_null(), "--set ", printable(assignment), ": there is no object at ",
              printable(path.substr(0, first)), Hint("see docs/training.md"));
    at = &(*at)[path.substr(first, dot - first)];
    first = dot + 1;
  }
  try {
    *at = parse_json(value, "--set " + path, {.depth = limits.depth - static_cast<int>(parts)});
  } catch (const Error&) {
    if (value.find_first_of("[{\"") == 0) throw;
    *at = value;
  }
}

namespace {

// A share of a million stories is too small for a file, which may be one document: then nothing would be held out.
void leave_world(Json& data) {
  constexpr double kHeldOut = 0.05;
  const bool pairs = data["world"] == "pairs";
  const Json held_out = data.value("validation", Json());
  if (held_out.is_number() && held_out > 0 && held_out < kHeldOut) data["validation"] = kHeldOut;
  if (pairs) data["format"] = "tsv";
  if (!pairs) data["tail"] = true;
  for (const char* of_world : {"world", "stories", "kinds"}) data.erase(of_world);
}

// With another kind of tokenizer, keys that only the recipe's own kind has are left out, unless they are set too.
void leave_tokenizer(const Json& before, Json& recipe, const std::function<bool(const std::string& key)>& is_set) {
  const auto train_of = [](const Json& json) {
    const Json::json_pointer path("/tokenizer/train");
    return json.is_object() && json.contains(path) && json[path].is_string() ? json[path].get<std::string>() : "";
  };
  const std::string kind = train_of(recipe), was = train_of(before);
  if (kind.empty()) return;  // loaded
  if (kind == was || was.empty()) return;
  for (const char* key : {"pattern", "vocab", "max_token_length"}) {
    const bool has = kind == "bpe" || (kind == "unigram" && key != std::string_view("pattern"));
    if (!has && !is_set(std::string("tokenizer.") + key)) recipe["tokenizer"].erase(key);
  }
}

}  // namespace

Json changed_recipe(Json recipe, const RecipeChanges& changes) {
  const Json before = recipe;
  const auto number = [](const Json& json, const char* path) {
    const Json* at =
        json.is_object() && json.contains(Json::json_pointer(path)) ? &json[Json::json_pointer(path)] : nullptr;
    return at != nullptr && at->is_number_integer() ? at->get<int64_t>() : 0;
  };
  if (!changes.files.empty()) {
    Json& data = recipe["data"];
    if (data.is_object() && data.contains("world")) leave_world(data);
    data["files"] = changes.files;
  }
  if (!changes.from.empty()) {
    recipe.erase("tokenizer");  // the model's own
    recipe["model"] = {{"from", changes.from}};
  }
  for (const std::string& assignment : changes.set) set_value(recipe, assignment);
  const auto is_set = [&](const std::string& key) {
    return std::any_of(changes.set.begin(), changes.set.end(), [&](const std::string& assignment) {
      return assignment.starts_with(key + "=") || assignment.starts_with(key.substr(0, key.find('.')) + "=");
    });
  };
  leave_tokenizer(before, recipe, is_set);

  const int64_t steps = number(recipe, "/steps"), planned = number(before, "/steps");
  if (steps <= 0 || steps >= planned) return recipe;
  int64_t room = steps;  // warm-up and decay follow one another
  for (const char* key : {"warmup", "decay"}) {
    const std::string path = std::string("/schedule/") + key;
    const int64_t was = number(recipe, path.c_str());
    if (!is_set(std::string("schedule.") + key) && was > 0) {
      const auto share = static_cast<double>(was) / static_cast<double>(planned);
      const auto now = std::max<int64_t>(std::llround(share * static_cast<double>(steps)), 1);
      recipe[Json::json_pointer(path)] = std::clamp<int64_t>(now, 0, std::max<int64_t>(room, 0));
    }
    room -= number(recipe, path.c_str());
  }
  return recipe;
}

}  // namespace qkv
