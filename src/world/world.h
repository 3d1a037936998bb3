// The built-in world: endless short stories from a seed. Story i is a function of (seed, i) alone.
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

  // The text of one story: what a language model reads as one document.
  std::string text(uint64_t index, Language language) const;

  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
};

std::span<const std::string_view> story_kinds();

}  // namespace qkv
