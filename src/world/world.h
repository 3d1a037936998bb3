// The built-in world: an endless stream of short stories. Story i is a pure function of (seed, i).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "world/story.h"

namespace qkv {

class World {
 public:
  explicit World(uint64_t seed) : World(seed, {}) {}
  // With stories of these kinds alone, in the proportions of the whole world; an unknown one is an Error. Empty: all.
  World(uint64_t seed, std::span<const std::string> kinds);

  Story story(uint64_t index) const;

  // The text of one story: one document for a language model.
  std::string text(uint64_t index, Language language) const;

  uint64_t seed() const { return seed_; }

 private:
  Story tell(uint64_t index, world::Languages languages) const;

  uint64_t seed_;
  std::vector<size_t> kinds_;  // indices into story_kinds()
  uint32_t weights_ = 0;       // their sum
};

std::span<const std::string_view> story_kinds();

}  // namespace qkv
