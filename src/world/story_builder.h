// Builds a story: creates entities, binds them to pattern roles, and realises sentences in both languages.
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

class StoryBuilder {
 public:
  StoryBuilder(uint64_t seed, uint64_t index, Languages languages);

  Draw& draw() { return draw_; }

  // Each of these creates an entity for a role.
  void person(char role, PersonOptions options = {});
  void same_gender_person(char role, char of);   // so that pronouns are ambiguous
  void other_gender_person(char role, char of);  // so that pronouns are unambiguous
  void worker(char role);                        // known by occupation, not by name
  void occupation(char role, char of);           // the occupation of a person
  void thing(char role, std::span<const Noun> nouns, std::span<const Adjective> qualities);
  void things(char role, std::span<const Noun> nouns, int count);
  void plain(char role, std::span<const Noun> nouns);
  void any_thing(char role);  // anything that can be carried
  void food(char role);
  void pet(char role);  // with a name
  void animal(char role, std::span<const Noun> nouns);
  void place(char role, std::span<const Spot> spots);
  void hiding_place(char role, char thing);  // where the thing fits
  void country(char country, char capital);
  void number(char role, int64_t value);
  void code(char role, int signs);   // "K 7 Q 2", 甲7丙2: different signs
  void spell(char role, int words);  // "lamp zota 7 river": any words
  void part(char role, char of);     // some neighbouring words of a code or spell
  void called(char role, const GivenName& name, Gender gender);
  void neighbour(char role, Gender gender);                // a person known by one short word
  void stranger(char role, Gender gender = Gender::none);  // a person with a made-up name
  void pair(char role, char first, char second);           // "they"
  void alias(char role, char as) { roles_.entities[index(role)] = roles_.entities[index(as)]; }
  void phrase(char letter, std::span<const Phrase> phrases);
  // Habits and tastes follow from the name: everyone called Anna does the same every day.
  void habit(char letter, char of);
  void favourite(char role, std::span<const Noun> nouns, char of);
  void time();  // &t
  void day();   // &t, without weather

  Gender gender(char role) const { return cast_[at(role)].gender; }
  int count(char role) const { return cast_[at(role)].count; }
  const std::string& name(char role) const { return cast_[at(role)].name; }
  const Noun* noun(char role) const { return cast_[at(role)].noun; }

  void say(std::string_view en, std::string_view zh);
  void say_one_of(std::initializer_list<Line> lines);
  void say_one_of(std::span<const Line> lines);
  // Adds a question about the story; `role` is the answer. One question may end the story, with its answer.
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
  Entity made_up(Gender gender);
  const GivenName& short_name(Gender gender);  // one of few
  bool name_taken(const Entity& who) const;
  const Phrase* adverbial(std::string_view en, std::string_view zh);
  void answer(AnnotatedText& annotated, const Question& question, std::string text, size_t asked_sentence) const;

  Draw draw_;
  std::vector<Entity> cast_;
  Roles roles_;
  Tense tense_;
  Languages languages_;
  English english_;
  Chinese chinese_;
  std::vector<Question> questions_;
};

}  // namespace qkv::world
