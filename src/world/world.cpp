#include "world/world.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "world/stories.h"

namespace qkv {

World::World(uint64_t seed, std::span<const std::string> kinds) : seed_(seed), kinds_(kinds.size()) {
  const std::span<const std::string_view> names = story_kinds();
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto at = std::find(names.begin(), names.end(), kinds[i]);
    const std::string near = nearest_key(kinds[i], names);
    QKV_CHECK(at != names.end(), "the world has no stories of the kind ", printable(kinds[i]),
              near.empty() ? Hint("see docs/world.md") : Hint("did you mean ", near, "? See docs/world.md"));
    kinds_[i] = static_cast<size_t>(at - names.begin());
  }
  if (kinds.empty()) {
    kinds_.resize(names.size());
    std::iota(kinds_.begin(), kinds_.end(), size_t{0});
  }
  for (const size_t kind : kinds_) weights_ += world::kinds()[kind].weight;
}

Story World::tell(uint64_t index, world::Languages languages) const {
  world::StoryBuilder builder(seed_, index, languages);
  uint32_t at = builder.draw().below(weights_);
  size_t chosen = 0;
  while (at >= world::kinds()[kinds_[chosen]].weight) at -= world::kinds()[kinds_[chosen++]].weight;
  const world::StoryKind& kind = world::kinds()[kinds_[chosen]];
  kind.tell(builder);
  return builder.finish(kind.name);
}

Story World::story(uint64_t index) const {
  return tell(index, {});
}

std::string World::text(uint64_t index, Language language) const {
  const bool english = language == Language::english;
  Story story = tell(index, {.english = english, .chinese = !english});
  return english ? std::move(story.english.text) : std::move(story.chinese.text);
}

std::span<const std::string_view> story_kinds() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const world::StoryKind& kind : world::kinds()) out.push_back(kind.name);
    return out;
  }();
  return names;
}

}  // namespace qkv
