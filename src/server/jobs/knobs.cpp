#include "server/jobs/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace qkv::server {
namespace {

struct Knob {
  const char *name, *path;  // in the recipe
  Fields::WholeRange range;
};
// Larger ones belong into a terminal: a page is for models that learn while one watches.
constexpr std::array<Knob, 5> kKnobs{{{"layers", "/model/num_hidden_layers", {1, 12}},
                                      {"heads", "/model/num_attention_heads", {1, 16}},
                                      {"width", "/model/hidden_size", {8, 512}},
                                      {"seed", "/seed", {0, 1'000'000'000}},
                                      {"steps", "/steps", {4, 1'000'000}}}};
constexpr const char *kLanguage = "/data/world", *kKeyHeads = "/model/num_key_value_heads",
                     *kFeed = "/model/intermediate_size";
constexpr int64_t kEvaluations = 12, kCheckpoints = 3;

const Json* at(const Json& recipe, const char* path) {
  const Json::json_pointer pointer(path);
  return recipe.contains(pointer) ? &recipe.at(pointer) : nullptr;
}

int64_t number_at(const Json& recipe, const char* path) {
  const Json* value = at(recipe, path);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : 0;
}

std::string assignment(std::string_view path, int64_t value) {
  std::string key(path.substr(1));
  std::replace(key.begin(), key.end(), '/', '.');
  return fmt::format("{}={}", key, value);
}

}  // namespace

OrderedJson knobs_of(const Json& recipe) {
  OrderedJson knobs = OrderedJson::object();
  for (const Knob& knob : kKnobs) {
    if (at(recipe, knob.path) != nullptr) knobs[knob.name] = number_at(recipe, knob.path);
  }
  if (const Json* world = at(recipe, kLanguage); world != nullptr && world->is_string()) {
    knobs["language"] = world->get<std::string>();
  }
  return knobs;
}

bool has_knobs(const Json& recipe) {
  const OrderedJson knobs = knobs_of(recipe);
  return knobs.size() == kKnobs.size() + 1 && knobs["language"] != "pairs" && knobs["language"] != "";
}

std::vector<std::string> turned_knobs(const Json& recipe, const Fields& asked) {
  std::vector<std::string> made;
  OrderedJson now = knobs_of(recipe);
  for (const Knob& knob : kKnobs) {
    const std::optional<int64_t> value = asked.whole(knob.name, knob.range);
    if (!value || *value == now[knob.name]) continue;
    now[knob.name] = *value;
    made.push_back(assignment(knob.path, *value));
  }
  if (const std::optional<std::string> language = asked.word("language", {"en", "zh", "both"})) {
    if (!now.contains("language") || *language != now["language"].get<std::string>())
      made.push_back("data.world=" + *language);
  }
  const auto width = now["width"].get<int64_t>(), heads = now["heads"].get<int64_t>(),
             steps = now["steps"].get<int64_t>(), before = number_at(recipe, "/model/hidden_size");
  if (width % (2 * heads) != 0) {
    asked.fail("width",
               fmt::format("is {}: {} heads need a multiple of {} (each an even part of it)", width, heads, 2 * heads));
  }
  if (heads != number_at(recipe, "/model/num_attention_heads") && at(recipe, kKeyHeads) != nullptr) {
    made.push_back(assignment(kKeyHeads, heads));
  }
  if (width != before && at(recipe, kFeed) != nullptr) {
    made.push_back(assignment(kFeed, std::max<int64_t>(8, number_at(recipe, kFeed) * width / before)));
  }
  // Often enough to see it write, and to go on after a stop.
  made.push_back(assignment("/evaluate/every", std::max<int64_t>(1, steps / kEvaluations)));
  made.push_back(assignment("/checkpoint/every", std::max<int64_t>(1, steps / kCheckpoints)));
  return made;
}

}  // namespace qkv::server
