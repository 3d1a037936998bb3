#include "world/realiser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace qkv::world {
namespace {

bool is_role(std::string_view body) {
  return !body.empty() && body[0] >= 'A' && body[0] <= 'Z' && (body.size() == 1 || body[1] < 'a' || body[1] > 'z');
}

std::string_view next_token(std::string_view& rest) {
  const size_t begin = rest.find_first_not_of(' ');
  if (begin == std::string_view::npos) return rest = {};
  rest.remove_prefix(begin);
  // A closing bracket may follow a word without a space.
  size_t end = rest.find_first_of(" ]");
  if (end == 0) end = 1;
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(std::min(end, rest.size()));
  return out;
}

// Modes for kinds and predicates, which are not mentions of an entity.
bool forced_noun(std::string_view mode) {
  return !mode.empty() && (mode[0] == '%' || mode[0] == '?' || mode[0] == '^' || mode[0] == '=');
}

bool is_opening(std::string_view form) {
  return form == "(" || form == "“" || form == "（" || form == "《";
}
bool is_closing(std::string_view form) {
  return form == ")" || form == "”" || form == "）" || form == "》";
}

}  // namespace

std::string_view usual_upos(std::string_view relation) {
  struct Row {
    std::string_view relation, upos;
  };
  static constexpr std::array kRows{
      Row{"nsubj", "NOUN"},    Row{"obj", "NOUN"},   Row{"obl", "NOUN"},        Row{"nmod", "NOUN"},
      Row{"iobj", "NOUN"},     Row{"appos", "NOUN"}, Row{"compound", "NOUN"},   Row{"clf", "NOUN"},
      Row{"advmod", "ADV"},    Row{"amod", "ADJ"},   Row{"nummod", "NUM"},      Row{"discourse", "INTJ"},
      Row{"flat", "PROPN"},    Row{"aux", "AUX"},    Row{"cop", "AUX"},         Row{"det", "DET"},
      Row{"case", "ADP"},      Row{"mark", "SCONJ"}, Row{"cc", "CCONJ"},        Row{"punct", "PUNCT"},
      Row{"vocative", "NOUN"}, Row{"expl", "PRON"},  Row{"dislocated", "NOUN"},
  };
  if (relation == "compound:prt") return "ADP";
  if (relation == "discourse:sp") return "PART";
  const std::string_view plain = relation.substr(0, relation.find(':'));
  for (const Row& row : kRows) {
    if (row.relation == plain) return row.upos;
  }
  return "VERB";
}

std::string_view upos_of_code(char code) {
  switch (code) {
    case 'N':
      return "NOUN";
    case 'V':
      return "VERB";
    case 'J':
      return "ADJ";
    case 'R':
      return "ADV";
    case 'P':
      return "ADP";
    case 'U':
      return "PRON";
    case 'D':
      return "DET";
    case 'M':
      return "NUM";
    case 'X':
      return "AUX";
    case 'T':
      return "PART";
    case 'I':
      return "INTJ";
    case 'S':
      return "SYM";
    case 'E':
      return "PROPN";
    case 'C':
      return "SCONJ";
    default:
      QKV_ASSERT(false, "no part of speech has the code ", code);
  }
  return {};
}

int Realiser::add(std::string_view form, std::string_view lemma, std::string_view upos) {
  StoryWord& word = words().emplace_back();
  word.form = form;
  word.lemma = lemma.empty() ? form : lemma;
  word.upos = upos;
  return static_cast<int>(words().size()) - 1;
}

void Realiser::attach(int index, int head, std::string_view relation) {
  word(index).head = head + 1;
  word(index).relation = relation;
}

void Realiser::place(Group& group, int index, std::string_view relation, bool usual) {
  if (relation.empty()) {
    group.heads.push_back(index);
  } else {
    group.dependents.push_back({index, relation, usual});
  }
}

void Realiser::subtree(Group& group, std::string_view relation, std::string_view& rest) {
  Group inner;
  inner.relation = relation;
  inner.plural = group.plural;
  inner.second = group.second;
  inner.form = relation == "conj" ? group.form : Form::finite;
  inner.head_upos = group.heads.empty() ? "VERB" : word(group.heads.front()).upos;
  const int head = this->group(inner, rest);
  group.dependents.push_back({head, relation, false});
  if (relation.starts_with("nsubj")) {
    group.second = inner.second;
    group.plural = word(head).feats.find("Number=Plur") != std::string::npos ||
                   (inner.plural && inner.heads.size() == 1) ||
                   std::any_of(inner.dependents.begin(), inner.dependents.end(),
                               [](const Dependent& d) { return d.relation == "conj"; });
  }
}

int Realiser::group(Group& group, std::string_view& rest) {
  std::string_view before;
  bool verb_seen = false;
  for (std::string_view text = next_token(rest); !text.empty(); text = next_token(rest)) {
    if (text == "]") break;
    if (adverbial_ != nullptr && group.relation == "root" && adverbial_stands(before, text, verb_seen)) {
      add_phrase(group, *std::exchange(adverbial_, nullptr));
    }
    if (text[0] == '[') {
      subtree(group, text.substr(1), rest);
    } else {
      token(group, text);
    }
    before = text;
    verb_seen = verb_seen || text.ends_with('*');
  }
  return choose_head(group);
}

int Realiser::choose_head(Group& group) {
  const auto yields = [&](int index) {
    const StoryWord& w = word(index);
    return w.upos == "ADV" || w.upos == "AUX" || w.upos == "ADP" || w.upos == "DET" || w.upos == "NUM" ||
           w.upos == "INTJ" || w.upos == "SCONJ" ||
           (w.upos == "VERB" && (w.lemma == "be" || w.lemma == "have" || w.lemma == "do"));
  };
  int head = -1;
  for (const int index : group.heads) {
    if (group.heads.size() > 1 && yields(index)) continue;
    QKV_ASSERT(head < 0, "a pattern's group has two heads: '", word(head).form, "' and '", word(index).form, "' under ",
               group.relation, " in: ", pattern_);
    head = index;
  }
  if (head < 0 && !group.heads.empty()) head = group.heads.back();
  if (head < 0) {
    const auto strong = [&](const Dependent& d) {
      const std::string_view upos = word(d.word).upos;
      return d.usual && (upos == "AUX" || upos == "ADV" || upos == "INTJ" || upos == "PART");
    };
    auto chosen = std::find_if(group.dependents.begin(), group.dependents.end(), strong);
    if (chosen == group.dependents.end()) {
      chosen = std::find_if(group.dependents.begin(), group.dependents.end(),
                            [](const Dependent& d) { return d.relation != "punct"; });
    }
    QKV_ASSERT(chosen != group.dependents.end(), "a pattern's group has no head under ", group.relation,
               " in: ", pattern_);
    head = chosen->word;
    if (word(head).upos == "AUX") word(head).upos = "VERB";
    if (group.relation.starts_with("advmod")) word(head).upos = "ADV";
    if (group.relation == "amod") word(head).upos = "ADJ";
    group.dependents.erase(chosen);
  }
  for (const int index : group.heads) {
    if (index == head) continue;
    StoryWord& w = word(index);
    const bool verbal = w.upos == "VERB" || w.upos == "AUX";
    if (verbal) w.upos = "AUX";
    const std::string_view relation = verbal              ? "aux"
                                      : w.upos == "ADP"   ? "case"
                                      : w.upos == "DET"   ? "det"
                                      : w.upos == "NUM"   ? "nummod"
                                      : w.upos == "INTJ"  ? "discourse"
                                      : w.upos == "SCONJ" ? "mark"
                                                          : "advmod";
    group.dependents.push_back({index, relation, true});
  }
  const bool verbal_head = word(head).upos == "VERB";
  for (const Dependent& d : group.dependents) {
    const bool be = word(d.word).lemma == "be";
    std::string_view relation = d.relation;
    if (relation == "aux" && be && !verbal_head) relation = "cop";
    if (relation == "cop" && be && verbal_head) relation = "aux";
    attach(d.word, head, relation);
  }
  return head;
}

void Realiser::token(Group& group, std::string_view text) {
  Token token{.relation = {}, .body = text};
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon > 0 && colon + 1 < text.size()) {
    token = {.relation = text.substr(0, colon), .body = text.substr(colon + 1)};
  }
  if (is_role(token.body)) {
    entity_token(group, token);
  } else if (token.body[0] == '@') {
    const int index = roles_.entities[static_cast<size_t>(token.body[1] - 'A')];
    add_place_word(group, entity(index));
  } else if (token.body[0] == '&') {
    phrase_token(group, token.body);
  } else {
    literal(group, token);
  }
}

void Realiser::phrase_token(Group& group, std::string_view body) {
  const Phrase* phrase = roles_.phrases[static_cast<size_t>(body[1] - 'a')];
  QKV_ASSERT(phrase != nullptr, "a pattern uses the phrase ", body, " but none is bound: ", pattern_);
  const std::string_view form = body.substr(2);
  group.form = form == ".ing"   ? Form::gerund
               : form == ".inf" ? Form::infinitive
               : form == ".le"  ? Form::le
                                : Form::finite;
  add_phrase(group, *phrase);
}

// The words of the phrase become part of this group; a head among them is the head of the group.
void Realiser::add_phrase(Group& group, const Phrase& phrase) {
  std::string_view rest = phrase_text(phrase);
  for (std::string_view text = next_token(rest); !text.empty(); text = next_token(rest)) {
    if (text[0] == '[') {
      subtree(group, text.substr(1), rest);
    } else {
      token(group, text);
    }
  }
}

bool Realiser::pronoun_is_clear(int index) const {
  const int now = static_cast<int>(annotated_.sentences.size());
  if (seen_[static_cast<size_t>(index)].sentence < now - 1) return false;
  const Gender gender = pronoun_gender(entity(index));
  for (size_t other = 0; other < cast_.size(); ++other) {
    if (static_cast<int>(other) == index || seen_[other].sentence < now - 1) continue;
    const Entity& candidate = cast_[other];
    if (candidate.kind == EntityKind::number || candidate.kind == EntityKind::group) continue;
    if (entity(index).kind == EntityKind::person && candidate.kind != EntityKind::person &&
        pronoun_gender(candidate) != gender) {
      continue;
    }
    if (pronoun_gender(candidate) == gender) return false;
  }
  return true;
}

void Realiser::entity_token(Group& group, Token token) {
  const int index = roles_.entities[static_cast<size_t>(token.body[0] - 'A')];
  QKV_ASSERT(index >= 0, "a pattern uses the role ", token.body, " but nobody plays it: ", pattern_);
  const Entity& who = entity(index);
  const std::string_view mode = token.body.substr(1);
  const bool possessive = mode.starts_with('\'') || mode.starts_with(".my") || mode.starts_with(".your");
  const std::string_view relation = token.relation.empty() && possessive ? "nmod:poss" : token.relation;
  const int first = static_cast<int>(words().size());
  const bool is_subject = relation.starts_with("nsubj") || (relation.empty() && group.relation.starts_with("nsubj"));
  const bool named = !who.name.empty() || who.kind == EntityKind::group;

  const bool described = forced_noun(mode);
  MentionKind kind = MentionKind::pronoun;
  int head = -1;
  const char forced = possessive && mode.size() > 1 ? mode[1] : (mode.empty() ? ' ' : mode[0]);
  if (who.kind == EntityKind::number) {
    const std::string digits = std::to_string(who.value);
    head = add(digits, digits, "NUM");
    word(head).entity = index;
    place(group, head, relation);
    return;
  }
  if (mode.starts_with('.')) {
    head = pronoun(index, mode.substr(1), relation.empty() ? group.relation : relation);
  } else {
    bool as_pronoun = forced == '~';
    const bool may = (who.kind == EntityKind::person || (who.kind == EntityKind::animal && !who.name.empty())) &&
                     (forced == ' ' || forced == '\'' || forced == '0');
    if (may && seen(index)) {
      const bool again = seen_[static_cast<size_t>(index)].sentence == static_cast<int>(annotated_.sentences.size());
      as_pronoun = (possessive && subject_ == index) || (pronoun_is_clear(index) && (again || chooses(index, 80, 0)));
    }
    if (as_pronoun) {
      head = pronoun(index, possessive ? "his" : "he", relation.empty() ? group.relation : relation);
    } else if (named && !described) {
      kind = MentionKind::name;
      head = name_phrase(index);
    } else {
      kind = MentionKind::noun;
      const char style = mode.starts_with("##") ? '=' : (possessive ? ' ' : forced);
      head = noun_phrase(index, style);
      if (described) {
        place(group, head, relation);
        return;
      }
    }
  }
  // 他的 and "Tom's" are two words; the mention is the first.
  const int last = static_cast<int>(words().size()) - 1;
  if (possessive) {
    group.possessor_begin = first;
    possessive_mark(head, mode);
  }
  word(head).entity = index;
  if (is_subject) {
    group.plural = who.count > 1;
    group.second = mode == ".I" || mode == ".you" || mode == ".we";
    if (mode.empty() || mode[0] != '.') subject_ = index;
  }
  const bool owned = !possessive && mode.starts_with('#') && group.possessor_begin >= 0;
  mention(index, kind, owned ? group.possessor_begin : first, last);
  // "You" in direct speech does not introduce an entity.
  if (!mode.starts_with('.')) mark_seen(index);
  place(group, head, relation);
}

void Realiser::mention(int index, MentionKind kind, int first, int last) {
  Mention& out = annotated_.mentions.emplace_back();
  out.entity = index;
  out.kind = kind;
  out.sentence = annotated_.sentences.size();
  out.first = static_cast<size_t>(first);
  out.last = static_cast<size_t>(last);
}

void Realiser::mark_seen(int index) {
  Seen& seen = seen_[static_cast<size_t>(index)];
  seen.sentence = static_cast<int>(annotated_.sentences.size());
  ++seen.times;
}

int Realiser::member(int index) {
  const int first = static_cast<int>(words().size());
  const int head = name_phrase(index);
  word(head).entity = index;
  mention(index, MentionKind::name, first, static_cast<int>(words().size()) - 1);
  mark_seen(index);
  return head;
}

void Realiser::update(std::span<const Entity> cast, const Roles& roles) {
  cast_ = cast;
  roles_ = roles;
  seen_.resize(cast.size());
}

void Realiser::sentence(std::string_view pattern, const Phrase* adverbial) {
  adverbial_ = adverbial;
  current_ = {};
  subject_ = -1;
  pattern_ = pattern;
  Group root;
  root.relation = "root";
  std::string_view rest = pattern;
  attach(group(root, rest), -1, "root");
  finish_sentence(current_);
  annotated_.sentences.push_back(std::move(current_));
}

std::string Realiser::sentence_text(std::string_view pattern) {
  const std::vector<Seen> seen = seen_;
  const size_t mentions = annotated_.mentions.size();
  sentence(pattern);
  std::string out;
  for (const StoryWord& word : annotated_.sentences.back().words) {
    out += word.form;
    if (word.space_after) out += ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  annotated_.sentences.pop_back();
  annotated_.mentions.resize(mentions);
  seen_ = seen;
  return out;
}

void Realiser::link_mentions() {
  std::vector<Mention>& all = annotated_.mentions;
  for (size_t i = 0; i < all.size(); ++i) {
    Mention& here = all[i];
    const StorySentence& sentence = annotated_.sentences[here.sentence];
    here.begin = sentence.words[here.first].begin;
    here.end = sentence.words[here.last].end;
    if (here.kind == MentionKind::pronoun) {
      size_t j = i;
      while (j > 0 && (all[j - 1].entity != here.entity || all[j - 1].kind == MentionKind::pronoun)) --j;
      if (j > 0) {
        here.antecedents = {j - 1};
        continue;
      }
      for (const int member : entity(here.entity).members) {
        for (size_t k = i; k > 0; --k) {
          if (all[k - 1].entity != member || all[k - 1].kind == MentionKind::pronoun) continue;
          here.antecedents.push_back(k - 1);
          break;
        }
      }
    } else {
      const auto first =
          std::find_if(all.begin(), all.end(), [&](const Mention& m) { return m.entity == here.entity; });
      const auto at = static_cast<size_t>(first - all.begin());
      if (at < i) here.antecedents = {at};
    }
  }
}

void Realiser::find_brackets() {
  std::vector<size_t> open;
  bool straight = false;  // inside English quotes, where opening and closing quote are the same character
  for (const StorySentence& sentence : annotated_.sentences) {
    for (const StoryWord& word : sentence.words) {
      const bool quote = word.form == "\"";
      if (is_opening(word.form) || (quote && !straight)) {
        open.push_back(word.begin);
      } else if (is_closing(word.form) || quote) {
        QKV_ASSERT(!open.empty(), "a story closes '", word.form, "' that it never opened");
        annotated_.brackets.push_back({.open = open.back(), .close = word.begin});
        open.pop_back();
      }
      if (quote) straight = !straight;
    }
    QKV_ASSERT(open.empty(), "a sentence leaves a bracket open");
  }
}

AnnotatedText Realiser::finish() {
  std::string& text = annotated_.text;
  for (StorySentence& sentence : annotated_.sentences) {
    if (!text.empty()) text += between_sentences();
    sentence.begin = text.size();
    for (StoryWord& word : sentence.words) {
      word.begin = text.size();
      text += word.form;
      word.end = text.size();
      if (word.space_after && &word != &sentence.words.back()) text += ' ';
    }
    sentence.end = text.size();
  }
  link_mentions();
  find_brackets();
  return std::move(annotated_);
}

}  // namespace qkv::world
