// What a story is told with: a cast, roles for its patterns, and a voice in each language.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "world/draw.h"
#include "world/lexicon.h"
#include "world/realiser.h"

namespace qkv::world {

struct Line {
  std::string_view en, zh;  // patterns of realiser.h
};

enum class Age { child, adult };

struct PersonOptions {
  Age age = Age::child;
  Gender gender = Gender::none;  // none: either
};

struct Voices {
  bool english = true, chinese = true;
};

class Teller {
 public:
  Teller(uint64_t seed, uint64_t index, Voices voices);

  Draw& draw() { return draw_; }

  // Each of these invents somebody or something for a role.
  void person(char role, PersonOptions options = {});
  void rival(char role, char of);     // another person of the same gender
  void contrast(char role, char of);  // one of the other gender: pronouns tell them apart
  void worker(char role);             // known by a trade, not by a name
  void trade(char role, char of);     // what a person is
  void thing(char role, std::span<const Noun> nouns, std::span<const Adjective> qualities);
  void things(char role, std::span<const Noun> nouns, int count);
  void plain(char role, std::span<const Noun> nouns);
  void any_thing(char role);  // of all that one can carry
  void food(char role);
  void pet(char role);  // with a name
  void animal(char role, std::span<const Noun> nouns);
  void place(char role, std::span<const Spot> spots);
  void hiding_place(char role, char thing);  // where it can lie
  void country(char country, char capital);
  void number(char role, int64_t value);
  void pair(char role, char first, char second);  // "they"
  void same(char role, char as) { roles_.entities[index(role)] = roles_.entities[index(as)]; }
  void phrase(char letter, std::span<const Phrase> phrases);
  void time();  // &t
  void day();   // &t, with no weather in it

  Gender gender(char role) const { return cast_[at(role)].gender; }
  int count(char role) const { return cast_[at(role)].count; }
  const std::string& name(char role) const { return cast_[at(role)].name; }
  const Noun* noun(char role) const { return cast_[at(role)].noun; }

  void say(std::string_view en, std::string_view zh);
  void any(std::initializer_list<Line> lines);
  void any(std::span<const Line> lines);
  // A question on what was told; `role` is the answer. One of them may end the story, with its answer.
  void ask(Line question, Line answer, char role);

  Story finish(std::string_view kind);

 private:
  struct Question {
    Line question, answer;
    int entity;
    Roles roles;
  };
  static size_t index(char role) { return static_cast<size_t>(role - 'A'); }
  size_t at(char role) const { return static_cast<size_t>(roles_.entities[index(role)]); }
  void bind(char role, Entity entity);
  Entity named(Age age, Gender gender);
  void answer(Telling& telling, const Question& question, std::string text, size_t asked_sentence) const;

  Draw draw_;
  std::vector<Entity> cast_;
  Roles roles_;
  Tense tense_;
  Voices voices_;
  English english_;
  Chinese chinese_;
  std::vector<Question> questions_;
};

}  // namespace qkv::world
