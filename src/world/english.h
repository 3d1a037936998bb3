// English morphology: inflection of verbs and nouns by rules and tables of exceptions, and lemmatization.
#pragma once

#include <string>
#include <string_view>

namespace qkv::world {

enum class VerbForm { base, third, past, participle, gerund };

std::string inflect(std::string_view base, VerbForm form);
std::string plural(std::string_view noun);

// "a" or "an" before this word.
std::string_view article(std::string_view next);

std::string verb_lemma(std::string_view form);  // empty if the lexicon has no such verb form
std::string noun_lemma(std::string_view form);
std::string number_word(int n);  // words up to twenty, then digits

}  // namespace qkv::world
