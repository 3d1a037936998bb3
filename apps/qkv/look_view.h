// What look saw, drawn on a terminal of any width.
#pragma once

#include <ostream>

#include "inspect/story.h"
#include "look_report.h"

namespace qkv::app {

struct LookView {
  const LookedAt& at;
  std::ostream& out;
  int columns = 80;
};

std::string word_of(const ShownToken& token);  // without the spaces before it; "·" where another shows its character

void draw_tokens(const LookView& view);
void draw_ladder(const LookView& view);
void draw_wall(const LookView& view, int64_t layer);  // every head small; -1: all layers
void draw_map(const LookView& view, const HeadId& head);
void draw_way(const LookView& view);                   // of the token asked for, a line a layer
void draw_story(const LookView& view, int64_t layer);  // and in full; -1: all layers

}  // namespace qkv::app
