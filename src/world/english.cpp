#include "world/english.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "world/lexicon.h"

namespace qkv::world {
namespace {

bool is_vowel(char c) {
  return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

bool ends(std::string_view word, std::string_view tail) {
  return word.size() > tail.size() && word.ends_with(tail);
}

// Whether the last consonant is doubled: one syllable with a single vowel. "stop" is, "open" and "play" are not.
bool doubles(std::string_view base) {
  if (base == "admit" || base == "begin" || base == "forget" || base == "regret") return true;
  const size_t n = base.size();
  if (n < 3 || is_vowel(base[n - 1]) || base[n - 1] == 'w' || base[n - 1] == 'x' || base[n - 1] == 'y') return false;
  if (!is_vowel(base[n - 2]) || (is_vowel(base[n - 3]) && !base.starts_with("qu"))) return false;
  return std::none_of(base.begin(), base.end() - 2, is_vowel) || base == "quit";
}

bool ends_in_sibilant(std::string_view word) {
  return ends(word, "s") || ends(word, "x") || ends(word, "z") || ends(word, "ch") || ends(word, "sh");
}

bool consonant_y(std::string_view word) {
  return word.size() > 1 && word.back() == 'y' && !is_vowel(word[word.size() - 2]);
}

std::string stem(std::string_view word, size_t cut) {
  return std::string(word.substr(0, word.size() - cut));
}

std::string regular_past(std::string_view base) {
  if (base.back() == 'e') return std::string(base) + "d";
  if (consonant_y(base)) return stem(base, 1) + "ied";
  if (doubles(base)) return std::string(base) + base.back() + "ed";
  return std::string(base) + "ed";
}

std::string third(std::string_view base) {
  if (base == "be") return "is";
  if (base == "have") return "has";
  if (consonant_y(base)) return stem(base, 1) + "ies";
  if (ends_in_sibilant(base) || base.back() == 'o') return std::string(base) + "es";
  return std::string(base) + "s";
}

std::string gerund(std::string_view base) {
  if (base == "be") return "being";
  if (ends(base, "ie")) return stem(base, 2) + "ying";
  if (base.back() == 'e' && !ends(base, "ee")) return stem(base, 1) + "ing";
  if (doubles(base)) return std::string(base) + base.back() + "ing";
  return std::string(base) + "ing";
}

const IrregularVerb* irregular(std::string_view base) {
  static const auto map = [] {
    std::unordered_map<std::string_view, const IrregularVerb*> out;
    for (const IrregularVerb& verb : irregular_verbs()) out.emplace(verb.base, &verb);
    return out;
  }();
  const auto found = map.find(base);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

std::string inflect(std::string_view base, VerbForm form) {
  switch (form) {
    case VerbForm::base:
      return std::string(base);
    case VerbForm::third:
      return third(base);
    case VerbForm::gerund:
      return gerund(base);
    case VerbForm::past:
      if (const IrregularVerb* verb = irregular(base)) return std::string(verb->past);
      return regular_past(base);
    case VerbForm::participle:
      if (const IrregularVerb* verb = irregular(base)) return std::string(verb->participle);
      return regular_past(base);
  }
  return std::string(base);
}

std::string plural(std::string_view noun) {
  static const auto map = [] {
    std::unordered_map<std::string_view, std::string_view> out;
    for (const IrregularPlural& row : irregular_plurals()) out.emplace(row.singular, row.plural);
    return out;
  }();
  if (const auto found = map.find(noun); found != map.end()) return std::string(found->second);
  if (consonant_y(noun)) return stem(noun, 1) + "ies";
  if (ends_in_sibilant(noun)) return std::string(noun) + "es";
  return std::string(noun) + "s";
}

std::string_view article(std::string_view next) {
  constexpr std::array<std::string_view, 4> kSilentH{"hour", "honest", "heir", "honour"};
  constexpr std::array<std::string_view, 8> kYouSound{"uni", "use", "uku", "usu", "eu", "one", "once", "ute"};
  const auto starts = [&](std::string_view head) { return next.starts_with(head); };
  if (std::any_of(kSilentH.begin(), kSilentH.end(), starts)) return "an";
  if (std::any_of(kYouSound.begin(), kYouSound.end(), starts)) return "a";
  if (next.starts_with("8") || next == "11" || next == "18") return "an";
  const char first = next.empty() ? 'x' : static_cast<char>(next[0] | 0x20);
  return is_vowel(first) ? "an" : "a";
}

std::string verb_lemma(std::string_view form) {
  static const auto map = [] {
    std::unordered_map<std::string, std::string> out{
        {"am", "be"}, {"are", "be"}, {"is", "be"}, {"was", "be"}, {"were", "be"}};
    const auto add = [&](std::string_view base) {
      for (const VerbForm f :
           {VerbForm::base, VerbForm::third, VerbForm::past, VerbForm::participle, VerbForm::gerund}) {
        out.emplace(inflect(base, f), base);
      }
    };
    for (const std::string_view base : regular_verbs()) add(base);
    for (const IrregularVerb& verb : irregular_verbs()) add(verb.base);
    return out;
  }();
  const auto found = map.find(std::string(form));
  return found == map.end() ? std::string() : found->second;
}

std::string noun_lemma(std::string_view form) {
  static const auto map = [] {
    std::unordered_map<std::string, std::string> out;
    for (const Noun* noun : all_nouns()) {
      const std::string_view head = noun->en.substr(noun->en.rfind(' ') + 1);
      out.emplace(plural(head), head);
      out.emplace(head, head);  // an atlas is one
      if (!noun->unit.empty()) out.emplace(plural(noun->unit), noun->unit);
    }
    for (const IrregularPlural& row : irregular_plurals()) out.emplace(row.plural, row.singular);
    return out;
  }();
  const auto found = map.find(std::string(form));
  if (found != map.end()) return found->second;
  if (form.size() < 4 || !form.ends_with('s') || form.ends_with("ss") || form.ends_with("us") || form == "news") {
    return std::string(form);
  }
  if (form.ends_with("ies")) return stem(form, 3) + "y";
  if (form.ends_with("ches") || form.ends_with("shes") || form.ends_with("xes") || form.ends_with("sses")) {
    return stem(form, 2);
  }
  return stem(form, 1);
}

std::string number_word(int n) {
  constexpr std::array<std::string_view, 21> kWords{
      "zero",     "one",     "two",     "three",     "four",     "five",     "six",
      "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
      "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"};
  if (n >= 0 && n <= 20) return std::string(kWords[static_cast<size_t>(n)]);
  return std::to_string(n);
}

}  // namespace qkv::world
