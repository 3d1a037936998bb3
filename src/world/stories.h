// The kinds of story. Each invents its people and things, tells what happens, and asks about it.
#pragma once

#include <span>
#include <string_view>

#include "world/teller.h"

namespace qkv::world {

struct StoryKind {
  std::string_view name;
  void (*tell)(Teller&);
  uint32_t weight;
};

std::span<const StoryKind> kinds();

// Sentences that many stories share.
PersonOptions anyone(Teller& t);  // young or old, man or woman
void ask_where(Teller& t, char thing, char place);
void ask_who_has(Teller& t, char thing, char owner);
void introduce(Teller& t, char who);  // "Tom is a kind baker who likes to paint pictures."
void comic_aside(Teller& t);          // in brackets, about nobody in the story
void happy_end(Teller& t, char who);

void lost_and_found(Teller& t);
void gift(Teller& t);
void journey(Teller& t);
void tea_visit(Teller& t);
void quarrel(Teller& t);
void market(Teller& t);
void lesson(Teller& t);
void sums(Teller& t);
void jokes(Teller& t);
void weather(Teller& t);
void mystery(Teller& t);
void riddle_of_it(Teller& t);   // one pronoun, two things it could be
void hide_and_seek(Teller& t);  // who has what, and where it is now
void garden(Teller& t);
void atlas(Teller& t);

}  // namespace qkv::world
