// English realiser: articles, agreement, tense, pronouns, capitals and spaces.
#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "world/realiser.h"

namespace qkv::world {
namespace {

struct EnglishFunctionWord {
  std::string_view relation, upos;
};

const std::unordered_map<std::string_view, EnglishFunctionWord>& english_function_words() {
  static const auto map = [] {
    std::unordered_map<std::string_view, EnglishFunctionWord> out;
    const auto add = [&](std::string_view relation, std::string_view upos, auto... forms) {
      (out.emplace(forms, EnglishFunctionWord{relation, upos}), ...);
    };
    add("case", "ADP", "in", "on", "at", "to", "from", "with", "under", "behind", "beside", "into", "onto", "for", "of",
        "by", "near", "over", "through", "without", "about", "around", "inside", "against", "between", "after",
        "across", "along", "during", "than", "past", "towards", "above", "below", "among");
    add("det", "DET", "the", "a", "an", "every", "no", "each", "some", "any", "this", "another", "both");
    add("mark", "SCONJ", "because", "if", "when", "while", "although", "until", "since", "as", "before", "whether");
    add("cc", "CCONJ", "and", "but", "or");
    add("advmod", "ADV", "very", "too", "quite", "so", "never", "always", "soon", "again", "then", "there", "here",
        "now", "still", "only", "even", "just", "almost", "already", "once", "also", "often", "usually", "suddenly",
        "slowly", "quickly", "quietly", "loudly", "politely", "together", "later", "today", "tomorrow", "yesterday",
        "really", "perhaps", "finally", "outside", "home", "where", "why", "how", "instead", "twice", "everywhere",
        "away", "carefully", "proudly", "gently", "happily", "sadly", "kindly", "at_last", "much", "ever", "rather",
        "yet", "back");
    add("advmod", "PART", "not", "n't");
    add("aux", "AUX", "will", "can", "could", "would", "must", "should", "may", "might", "'ll");
    add("mark", "PART", "to_");
    add("discourse", "INTJ", "yes", "oh", "well", "please", "hello", "ah", "goodbye", "hmm");
    return out;
  }();
  return map;
}

bool is_english_punctuation(std::string_view form) {
  static constexpr std::array<std::string_view, 11> kMarks{".", ",", "?", "!", ":", ";", "“", "”", "(", ")", "..."};
  for (const std::string_view mark : kMarks) {
    if (form == mark) return true;
  }
  return false;
}

bool is_pronoun(std::string_view form) {
  static constexpr std::array<std::string_view, 10> kWords{"who",        "which",   "what",      "nobody", "everyone",
                                                           "everything", "nothing", "something", "that",   "both"};
  return std::find(kWords.begin(), kWords.end(), form) != kWords.end();
}

struct PronounRow {
  std::string_view subject, object, possessive, self, feats;
};

constexpr PronounRow kHe{"he", "him", "his", "himself", "Gender=Masc|Number=Sing|Person=3"};
constexpr PronounRow kShe{"she", "her", "her", "herself", "Gender=Fem|Number=Sing|Person=3"};
constexpr PronounRow kIt{"it", "it", "its", "itself", "Gender=Neut|Number=Sing|Person=3"};
constexpr PronounRow kThey{"they", "them", "their", "themselves", "Number=Plur|Person=3"};
constexpr PronounRow kI{"I", "me", "my", "myself", "Number=Sing|Person=1"};
constexpr PronounRow kYou{"you", "you", "your", "yourself", "Person=2"};
constexpr PronounRow kWe{"we", "us", "our", "ourselves", "Number=Plur|Person=1"};

const PronounRow& third_person(const Entity& who) {
  if (who.count > 1) return kThey;
  return who.gender == Gender::male ? kHe : who.gender == Gender::female ? kShe : kIt;
}

bool is_capital(std::string_view form) {
  return form[0] >= 'A' && form[0] <= 'Z';
}

std::string capital(std::string form) {
  if (form[0] >= 'a' && form[0] <= 'z') form[0] = static_cast<char>(form[0] - 'a' + 'A');
  return form;
}

std::string verb_feats(const std::vector<StoryWord>& words, size_t at, Tense tense) {
  const StoryWord& word = words[at];
  bool perfect = false, bare = false, subject = false;
  for (const StoryWord& child : words) {
    if (child.head != static_cast<int>(at) + 1) continue;
    const bool helper = child.relation == "aux";
    perfect |= helper && (child.lemma == "have" || child.lemma == "be");
    bare |=
        (helper && child.lemma != "have" && child.lemma != "be") || (child.relation == "mark" && child.lemma == "to");
    subject |= child.relation.starts_with("nsubj");
  }
  std::string form = word.form;
  form[0] = static_cast<char>(form[0] | 0x20);
  const bool same = form == word.lemma;
  if (!same && form.ends_with("ing")) return "Tense=Pres|VerbForm=Part";
  if (perfect && word.upos == "VERB") return "Tense=Past|VerbForm=Part";
  if (bare) return "VerbForm=Inf";
  if (word.upos == "AUX" && same && word.lemma != "be") subject = true;
  if (word.upos == "AUX" && word.lemma != "be" && word.lemma != "have" && word.lemma != "do") return "VerbForm=Fin";
  if (form == "am" || form == "are") return "Mood=Ind|Tense=Pres|VerbForm=Fin";
  if (form == "was" || form == "were") return "Mood=Ind|Tense=Past|VerbForm=Fin";
  if (same) {
    const bool past = subject && tense == Tense::past && inflect(word.lemma, VerbForm::past) == form;
    return past ? "Mood=Ind|Tense=Past|VerbForm=Fin" : subject ? "Mood=Ind|Tense=Pres|VerbForm=Fin" : "VerbForm=Inf";
  }
  if (form == inflect(word.lemma, VerbForm::third)) return "Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin";
  return "Mood=Ind|Tense=Past|VerbForm=Fin";
}

}  // namespace

void English::verb(Group& group, std::string_view base, std::string_view upos, Token token) {
  std::string form;
  const bool bare = group.plural || group.second;
  if (group.form == Form::gerund) {
    form = inflect(base, VerbForm::gerund);
  } else if (group.form == Form::infinitive) {
    form = base;
  } else if (base == "be") {
    form = tense() == Tense::past ? (bare ? "were" : "was") : (bare ? "are" : "is");
  } else if (base == "can" || base == "will") {
    form = tense() == Tense::past ? (base == "can" ? "could" : "would") : base;
  } else if (tense() == Tense::past) {
    form = inflect(base, VerbForm::past);
  } else {
    form = inflect(base, bare ? VerbForm::base : VerbForm::third);
  }
  place(group, add(form, base, upos), token.relation, token.usual);
}

void English::literal(Group& group, Token token) {
  std::string_view body = token.body;
  std::string_view relation = token.relation;
  bool usual = false;
  if (is_english_punctuation(body)) {
    place(group, add(body == "“" || body == "”" ? "\"" : body, {}, "PUNCT"), relation.empty() ? "punct" : relation);
    return;
  }
  std::string_view upos, lemma;
  if (const size_t slash = body.rfind('/'); slash != std::string_view::npos && slash + 2 == body.size() && slash > 0) {
    upos = upos_of_code(body.back());
    body = body.substr(0, slash);
  }
  if (const size_t caret = body.find('^'); caret != std::string_view::npos && caret > 0) {
    lemma = body.substr(caret + 1);
    body = body.substr(0, caret);
  }
  const bool inflected = body.size() > 1 && body.back() == '*';
  if (inflected) body.remove_suffix(1);
  if (const auto found = english_function_words().find(body); found != english_function_words().end() && upos.empty()) {
    if (relation.empty()) relation = found->second.relation, usual = true;
    upos = relation == "case" ? "ADP" : found->second.upos;
  }
  if (inflected && upos.empty()) {
    const bool auxiliary = relation.starts_with("aux") || relation == "cop" || body == "can" || body == "will";
    // A bare be* is the copula of its group; the predicate is the head.
    if (relation.empty() && body == "be") relation = "cop", usual = true;
    if (relation.empty() && (body == "can" || body == "will")) relation = "aux", usual = true;
    upos = auxiliary || relation == "cop" ? "AUX" : "VERB";
  }
  if (inflected) {
    verb(group, body, upos, {.relation = relation, .body = body, .usual = usual});
    return;
  }
  if (upos.empty()) {
    upos = relation.empty() ? (group.relation.starts_with("conj") ? group.head_upos : usual_upos(group.relation))
                            : usual_upos(relation);
    if (is_capital(body) && upos == "NOUN") upos = "PROPN";
    if (upos == "NOUN" && is_pronoun(body)) upos = "PRON";
  }
  std::string known;
  if (lemma.empty() && (upos == "VERB" || upos == "AUX")) lemma = known = verb_lemma(body);
  if (lemma.empty() && upos == "NOUN") lemma = known = noun_lemma(body);
  if (body == "to_") body = lemma = "to";
  if (body == "n't") lemma = "not";
  if (body == "'ll") lemma = "will";
  const int index = add(body, lemma, upos);
  if (upos == "NOUN") word(index).feats = word(index).lemma == word(index).form ? "Number=Sing" : "Number=Plur";
  if (relation.starts_with("nsubj") || (relation.empty() && group.relation.starts_with("nsubj"))) {
    group.plural = word(index).feats == "Number=Plur";
    group.second = false;
  }
  place(group, index, relation, usual);
}

int English::name_phrase(int index) {
  const Entity& who = entity(index);
  if (who.kind == EntityKind::group) {
    const int head = member(who.members[0]);
    const int cc = add("and", {}, "CCONJ");
    const int second = member(who.members[1]);
    attach(cc, second, "cc");
    attach(second, head, "conj");
    return head;
  }
  std::string_view name = seen(index) && !who.short_name.empty() ? who.short_name : who.name;
  int article = -1;
  if (who.article) article = add("the", {}, "DET");
  int head = -1;
  while (!name.empty()) {
    const size_t space = std::min(name.find(' '), name.size());
    const int part = add(name.substr(0, space), {}, "PROPN");
    word(part).feats = "Number=Sing";
    if (head < 0) {
      head = part;
    } else {
      attach(part, head, "flat");
    }
    name.remove_prefix(std::min(space + 1, name.size()));
  }
  if (article >= 0) attach(article, head, "det");
  return head;
}

int English::noun_phrase(int index, char mode) {
  const Entity& what = entity(index);
  const Noun& noun = *what.noun;
  const bool first = !seen(index);
  const bool indefinite = mode == '+' || mode == '?' || (mode == ' ' && first && what.kind != EntityKind::place);
  const bool counted = !noun.unit.empty();
  std::vector<std::pair<int, std::string_view>> before;
  const bool several = what.count > 1;
  if (mode != '#' && mode != '=' && mode != '%') {
    if (!indefinite) {
      before.emplace_back(add("the", {}, "DET"), "det");
    } else if (several) {
      const std::string n = number_word(what.count);
      before.emplace_back(add(n, {}, "NUM"), "nummod");
    } else {
      before.emplace_back(add("a", {}, "DET"), "det");
    }
  }
  int unit = -1, of = -1;
  if (counted && indefinite) {
    unit = add(several ? plural(noun.unit) : std::string(noun.unit), noun.unit, "NOUN");
    word(unit).feats = several ? "Number=Plur" : "Number=Sing";
    for (const auto& [word, relation] : before) attach(word, unit, relation);
    before.clear();
    of = add("of", {}, "ADP");
  }
  const bool described =
      what.adjective != nullptr && (indefinite || mode == '=' || mode == '!' || (first && mode == '-'));
  if (described) before.emplace_back(add(what.adjective->en, {}, "ADJ"), "amod");
  std::string_view rest = noun.en;
  while (rest.find(' ') != std::string_view::npos) {
    const size_t space = rest.find(' ');
    before.emplace_back(add(rest.substr(0, space), {}, "NOUN"), "compound");
    word(before.back().first).feats = "Number=Sing";
    rest.remove_prefix(space + 1);
  }
  const bool many = !counted && (several || mode == '%');
  const int head = add(many ? plural(rest) : std::string(rest), rest, "NOUN");
  word(head).feats = many ? "Number=Plur" : "Number=Sing";
  for (const auto& [word, relation] : before) attach(word, head, relation);
  if (unit < 0) return head;
  attach(of, head, "case");
  attach(head, unit, "nmod");
  return unit;
}

int English::pronoun(int index, std::string_view which, std::string_view relation) {
  const PronounRow& row = which == "I" || which == "me" || which.starts_with("my") ? kI
                          : which == "you" || which.starts_with("your")            ? kYou
                          : which == "we" || which == "us" || which == "our"       ? kWe
                                                                                   : third_person(entity(index));
  const bool possessive = which == "his" || which.starts_with("my") || which.starts_with("your") || which == "our";
  const bool self = which == "self";
  const bool subject = relation.starts_with("nsubj") || relation == "root";
  const std::string_view form = self ? row.self : possessive ? row.possessive : subject ? row.subject : row.object;
  const int out = add(form, possessive ? row.possessive : row.subject, "PRON");
  std::string& feats = word(out).feats;
  feats = possessive ? "" : subject ? "Case=Nom|" : "Case=Acc|";
  feats += row.feats;
  if (possessive) feats += "|Poss=Yes";
  feats += "|PronType=Prs";
  if (self) {
    feats += "|Reflex=Yes";
    feats.erase(0, 9);
  }
  return out;
}

void English::possessive_mark(int head, std::string_view) {
  if (word(head).upos == "PRON") return;
  attach(add("'s", {}, "PART"), head, "case");
}

void English::add_place_word(Group& group, const Entity& place_) {
  place(group, add(place_.at, {}, "ADP"), "case");
}

void English::finish_sentence(StorySentence& sentence) {
  std::vector<StoryWord>& all = sentence.words;
  bool inside = false, start = true;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].upos == "VERB" || all[i].upos == "AUX") all[i].feats = verb_feats(all, i, tense());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    StoryWord& word = all[i];
    if (word.upos == "DET" && (word.lemma == "a" || word.lemma == "an"))
      word.lemma = "a", word.form = article(all[i + 1].form);
    const bool quote = word.form == "\"";
    if (quote) {
      inside = !inside;
      if (inside) start = true;
    } else if (start && word.form != "(") {
      word.form = capital(word.form);
      start = false;
    }
    const bool opens = (quote && inside) || word.form == "(";
    const bool last = i + 1 == all.size();
    if (last) continue;
    const std::string_view next = all[i + 1].upos == "SYM" ? "" : std::string_view(all[i + 1].form);
    const bool next_closes = (next == "\"" && inside) || next == ")" || next == "." || next == "," || next == "?" ||
                             next == "!" || next == ":" || next == ";" || next == "n't" || next.starts_with('\'');
    word.space_after = !opens && !next_closes;
  }
}

}  // namespace qkv::world
