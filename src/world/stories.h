// The kinds of story. Each creates entities, tells what happens to them, and asks questions about it.
#pragma once

#include <span>
#include <string_view>

#include "world/story_builder.h"

namespace qkv::world {

struct StoryKind {
  std::string_view name;
  void (*tell)(StoryBuilder&);
  uint32_t weight;
};

std::span<const StoryKind> kinds();

// Sentences shared by many stories.
PersonOptions anyone(StoryBuilder& t);  // any age and gender
void ask_where(StoryBuilder& t, char thing, char place);
void ask_who_has(StoryBuilder& t, char thing, char owner);
void introduce(StoryBuilder& t, char who);  // "Tom is a kind baker who likes to paint pictures."
void comic_aside(StoryBuilder& t);          // a remark in brackets, not about the story
void happy_end(StoryBuilder& t, char who);
void gesture(StoryBuilder& t, char who);  // now and then: "She slowly shook her head."

void lost_and_found(StoryBuilder& t);
void gift(StoryBuilder& t);
void journey(StoryBuilder& t);
void tea_visit(StoryBuilder& t);
void quarrel(StoryBuilder& t);
void market(StoryBuilder& t);
void lesson(StoryBuilder& t);
void sums(StoryBuilder& t);
void jokes(StoryBuilder& t);
void weather(StoryBuilder& t);
void mystery(StoryBuilder& t);
void riddle_of_it(StoryBuilder& t);   // one pronoun with two possible antecedents
void hide_and_seek(StoryBuilder& t);  // tracking who has what, and where it is now
void garden(StoryBuilder& t);
void atlas(StoryBuilder& t);
void neighbours(StoryBuilder& t);     // who a pronoun or a far subject is decides what follows
void habits(StoryBuilder& t);         // one sentence about each of many people, with the verb far from its subject
void shopping_list(StoryBuilder& t);  // read back word by word
void password(StoryBuilder& t);       // a code, said again and again
void song(StoryBuilder& t);           // verses with a refrain
void echo(StoryBuilder& t);           // a row of short words, said again: what qkv demo trains on
void strangers(StoryBuilder& t);      // people with made-up names

}  // namespace qkv::world
