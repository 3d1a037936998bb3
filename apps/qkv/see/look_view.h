// What look saw, drawn on a terminal of any width.
#pragma once

#include <ostream>

#include "inspect/look/story.h"
#include "inspect/report/look_report.h"

namespace qkv::app {

struct LookView {
  const LookedAt& at;
  std::ostream& out;
  int columns = 80;
  bool chinese = false;

  const char* words(const char* english, const char* in_chinese) const { return chinese ? in_chinese : english; }
};

// What the drawings share.
void draw_title(const LookView& view, const std::string& text, const std::string& more);
std::string word_of(const ShownToken& token);  // without the spaces before it; "·" where another shows its character
std::string percent(double share);
// So many of `rows`, with `token` among them and most of them before it.
KeptRows window_of(const KeptRows& rows, int64_t token, int64_t most);
// The share of these rows' attention that goes to these keys.
double share_of(const SeenAttention& a, int64_t head, const KeptRows& rows, const KeptRows& keys);

void draw_tokens(const LookView& view);
void draw_ladder(const LookView& view);
void draw_wall(const LookView& view, int64_t layer);  // every head small; -1: all layers
void draw_map(const LookView& view, const HeadId& head);
void draw_path(const LookView& view);                  // of the token asked for, a line per layer
void draw_story(const LookView& view, int64_t layer);  // and in full; -1: all layers

}  // namespace qkv::app
