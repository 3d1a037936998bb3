#include "labs/facts/fact_world.h"

#include <algorithm>

#include "world/draw.h"

namespace qkv {
namespace {

// Every word is a token: countries, roles, towns, colours, then these.
enum FactWord : int32_t { kBegin, kStop, kThe, kOf, kIs, kHas, kIts, kIn, kFlag, kFactWords };

constexpr int32_t kCountry0 = 0, kRole0 = kCountry0 + FactWorld::kCountries, kTown0 = kRole0 + FactWorld::kRoles,
                  kColour0 = kTown0 + FactWorld::kTowns, kWord0 = kColour0 + FactWorld::kColours;

int32_t drawn_from(world::Draw& draw, int32_t first, int32_t count) {
  return first + static_cast<int32_t>(draw.below(static_cast<uint32_t>(count)));
}
int32_t some_colour(world::Draw& draw) {
  return drawn_from(draw, kColour0, FactWorld::kColours);
}
int32_t some_town(world::Draw& draw) {
  return drawn_from(draw, kTown0, FactWorld::kTowns);
}

using Words = std::vector<int32_t>;
void say_words(Words& to, std::initializer_list<int32_t> words) {
  to.insert(to.end(), words);
}
constexpr int32_t fact_word(FactWord word) {
  return kWord0 + word;
}

void say_fact(Words& to, uint32_t frame, int32_t country, int32_t role, int32_t where) {
  if (frame == 0)
    say_words(to, {fact_word(kThe), role, fact_word(kOf), country, fact_word(kIs), where, fact_word(kStop)});
  if (frame == 1)
    say_words(to, {country, fact_word(kHas), fact_word(kIts), role, fact_word(kIn), where, fact_word(kStop)});
  if (frame == 2)
    say_words(to, {fact_word(kIn), country, fact_word(kThe), role, fact_word(kIs), where, fact_word(kStop)});
}

void say_flag(Words& to, int32_t colour) {
  say_words(to, {fact_word(kFlag), colour, fact_word(kStop)});
}

}  // namespace

FactWorld::FactWorld(uint64_t seed, bool shuffled) : shuffled_(shuffled) {
  world::Draw draw(seed, 0, 21);
  for (int32_t i = 0; i < kCountries * kRoles; ++i) towns_.push_back(some_town(draw));
}

int64_t FactWorld::vocabulary() {
  return kWord0 + kFactWords;
}

// The colour of the flag, three times, and two facts after each.
TrainBatch FactWorld::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 22);
  TrainBatch batch;
  for (int64_t i = 0; i < count; ++i) {
    Words text{fact_word(kBegin)};
    const int32_t colour = some_colour(draw);
    for (int32_t said = 0; said < 6; ++said) {
      if (said % 2 == 0) say_flag(text, colour);
      const int32_t country = drawn_from(draw, 0, kCountries), role = drawn_from(draw, 0, kRoles);
      say_fact(text, draw.below(3), kCountry0 + country, kRole0 + role,
               shuffled_ ? some_town(draw) : town_of(country, role));
    }
    add_text(batch, text);
  }
  return batch;
}

std::vector<FactWorld::Question> FactWorld::facts(uint64_t seed) const {
  world::Draw draw(seed, 0, 23);
  std::vector<Question> all;
  for (int32_t role = 0; role < kRoles; ++role) {
    for (int32_t country = 0; country < kCountries; ++country) {
      Words text{fact_word(kBegin)};
      say_flag(text, some_colour(draw));
      say_words(text, {fact_word(kThe), kRole0 + role, fact_word(kOf), kCountry0 + country, fact_word(kIs)});
      all.push_back({.text = {.ids = std::move(text)}, .answer = town_of(country, role), .group = role});
    }
  }
  return all;
}

std::vector<FactWorld::Question> FactWorld::flags(uint64_t seed, int64_t count) const {
  world::Draw draw(seed, 0, 24);
  std::vector<Question> all;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t colour = some_colour(draw), country = drawn_from(draw, 0, kCountries),
                  role = drawn_from(draw, 0, kRoles);
    Words text{fact_word(kBegin)};
    say_flag(text, colour);
    say_fact(text, 0, kCountry0 + country, kRole0 + role, town_of(country, role));
    say_words(text, {fact_word(kFlag)});
    all.push_back({.text = {.ids = std::move(text)}, .answer = colour});
  }
  return all;
}

}  // namespace qkv
