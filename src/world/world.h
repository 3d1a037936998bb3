// The built-in world: an endless stream of short stories. Story i is a pure function of (seed, i).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "world/story.h"

namespace qkv {

class World {
 public:
  explicit World(uint64_t seed) : seed_(seed) {}

  Story story(uint64_t index) const;

  // The text of one story: one document for a language model.
  std::string text(uint64_t index, Language language) const;

  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
};

std::span<const std::string_view> story_kinds();

}  // namespace qkv
