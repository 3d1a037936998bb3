// A small world of facts: each country has a town for each of several roles (capital, port, ...), drawn once. Texts state
// these facts in several frames, and the colour of a flag, drawn anew in every text. What the world is like has to be learnt
// by heart; the colour has to be read.
#pragma once

#include "data/token_text.h"
#include "labs/small_model.h"

namespace qkv {

class FactWorld {
 public:
  static constexpr int32_t kCountries = 16, kRoles = 8, kTowns = 32, kColours = 32;

  // shuffled: the facts are drawn anew in every text, so there is nothing to know.
  explicit FactWorld(uint64_t seed, bool shuffled = false);

  static int64_t vocabulary();
  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;

  // A question and its answer; questions of one kind have the same length and their words at the same places.
  struct Question {
    TokenText text;
    int32_t answer = 0;
    int32_t group = 0;  // questions that ask for the same role
  };
  // "flag COLOUR . the ROLE of COUNTRY is": all facts; the colours are drawn by the seed.
  std::vector<Question> facts(uint64_t seed) const;
  // "flag COLOUR . the ROLE of COUNTRY is TOWN . flag": read in the text.
  std::vector<Question> flags(uint64_t seed, int64_t count) const;

  // Places in the text of a question about a fact.
  static constexpr int32_t kUnrelated = 4;  // words 0 to 3 are of the other sentence
  static constexpr int32_t kCountryAt = 7, kLastAt = 8;

 private:
  int32_t town_of(int32_t country, int32_t role) const { return towns_[static_cast<size_t>(country * kRoles + role)]; }
  std::vector<int32_t> towns_;
  bool shuffled_;
};

}  // namespace qkv
