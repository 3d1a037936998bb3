// The word lists. Tables are grouped by what can be done with a thing, so that sentences make sense.
#pragma once

#include <span>
#include <string_view>

#include "world/entity.h"

namespace qkv::world {

// A thing with a preposition and, in Chinese, a localiser: "on the table", 在桌子上.
struct Spot {
  Noun noun;
  std::string_view at, at_zh;
};

struct GivenName {
  std::string_view en, zh;
};

struct Country {
  std::string_view en, zh, capital, capital_zh;
  bool article = false;  // "the Netherlands"
};

// A verb phrase in both languages, in the notation of realiser.h. Patterns insert it with &v.
struct Phrase {
  std::string_view en, zh;
};

struct IrregularVerb {
  std::string_view base, past, participle;
};
struct IrregularPlural {
  std::string_view singular, plural;
};

// people.cpp
std::span<const GivenName> western_boys();
std::span<const GivenName> western_girls();
std::span<const GivenName> chinese_boys();
std::span<const GivenName> chinese_girls();
std::span<const GivenName> western_families();
std::span<const GivenName> chinese_families();
std::span<const GivenName> pet_names();
std::span<const Noun> jobs();
std::span<const Phrase> hobbies();

// things.cpp
std::span<const Noun> trinkets();   // fit into a pocket
std::span<const Noun> keepsakes();  // small things that are carried, lost and given
std::span<const Noun> clothes();
std::span<const Noun> readables();
std::span<const Noun> instruments();
std::span<const Noun> tools();
std::span<const Noun> toys();
std::span<const Noun> kitchenware();

// nature.cpp
std::span<const Noun> fruit();   // sold by number at the market: fruit, vegetables, eggs
std::span<const Noun> baked();   // cakes, buns, pies: one piece each
std::span<const Noun> dishes();  // eaten with a spoon or chopsticks
std::span<const Noun> hot_drinks();
std::span<const Noun> cold_drinks();
std::span<const Noun> pets();
std::span<const Noun> wild_animals();
std::span<const Noun> flowers();
std::span<const Noun> trees();

// places.cpp
std::span<const Country> countries();
std::span<const Spot> rooms();
std::span<const Spot> spots();  // where a thing can be in a room
std::span<const Spot> shops();
std::span<const Spot> nooks();   // big enough for trinkets only
std::span<const Spot> places();  // of a town
std::span<const Noun> vehicles();
std::span<const Noun> sights();  // for travellers

// qualities.cpp
std::span<const Adjective> thing_qualities();
std::span<const Adjective> colours();
std::span<const Adjective> baked_qualities();
std::span<const Adjective> fruit_qualities();
std::span<const Adjective> animal_qualities();
std::span<const Adjective> person_qualities();
std::span<const IrregularVerb> irregular_verbs();
std::span<const std::string_view> regular_verbs();
std::span<const IrregularPlural> irregular_plurals();

// All nouns of the tables above, for lemmatizing plurals.
std::span<const Noun* const> all_nouns();

}  // namespace qkv::world
