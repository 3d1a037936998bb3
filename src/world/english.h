// English morphology: forms of verbs and nouns by rule and by the tables of exceptions, and the way back to the lemma.
#pragma once

#include <string>
#include <string_view>

namespace qkv::world {

enum class VerbForm { base, third, past, participle, gerund };

std::string inflect(std::string_view base, VerbForm form);
std::string plural(std::string_view noun);

// "a" or "an" before this word.
std::string_view article(std::string_view next);

std::string verb_lemma(std::string_view form);  // empty if no verb of the world has this form
std::string noun_lemma(std::string_view form);
std::string number_word(int n);  // up to twenty, digits beyond

}  // namespace qkv::world
