// A list in random order.
#pragma once

#include <utility>
#include <vector>

#include "world/draw.h"

namespace qkv {

template <class List>
void shuffle(world::Draw& draw, List& list) {
  for (size_t i = list.size() - 1; i > 0; --i) std::swap(list[i], list[draw.below(static_cast<uint32_t>(i + 1))]);
}

}  // namespace qkv
