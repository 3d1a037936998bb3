#include "world/world.h"

#include <vector>

#include "world/stories.h"

namespace qkv {
namespace {

Story tell(uint64_t seed, uint64_t index, world::Languages languages) {
  static const uint32_t total = [] {
    uint32_t sum = 0;
    for (const world::StoryKind& kind : world::kinds()) sum += kind.weight;
    return sum;
  }();
  world::StoryBuilder builder(seed, index, languages);
  uint32_t at = builder.draw().below(total);
  const world::StoryKind* kind = world::kinds().data();
  while (at >= kind->weight) at -= (kind++)->weight;
  kind->tell(builder);
  return builder.finish(kind->name);
}

}  // namespace

Story World::story(uint64_t index) const {
  return tell(seed_, index, {});
}

std::string World::text(uint64_t index, Language language) const {
  const bool english = language == Language::english;
  Story story = tell(seed_, index, {.english = english, .chinese = !english});
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
