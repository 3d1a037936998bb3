// Turns patterns into sentences with their trees. A pattern is a dependency tree written in word order:
//
//   nsubj:A put* obj:B [obl beside C] [advcl because nsubj:B~ be* hot/J] .
//
//   [rel ...]     a subtree; its head is the one word in it without a relation (of two, the auxiliary or adverb yields)
//   rel:word      a dependent of one word; function words and punctuation know their usual relation and need none
//   word/J        a part of speech other than the relation suggests: N noun, V verb, J adjective, R adverb, P
//   preposition,
//                 U pronoun, D determiner, M number, X auxiliary, T particle, I interjection, S symbol, E proper noun
//   word^lemma    a lemma that the tables do not know
//   put*          a verb that takes the story's tense and agrees with its subject; in Chinese, where an aspect goes
//   A             an entity, named as is usual at this point: "Tom", "he", "a red book", "the book"
//   A! A~ A+ A- A# A##   in full; as a pronoun; with "a"; with "the"; bare; bare with its quality
//   A% A? A=      as a kind ("cats"); as what somebody is ("a kind baker", "lazy cat"): no mention of anyone
//   A^            its measure word alone (Chinese)
//   A' A'~ A'!    possessive: "his" or "Tom's"; in Chinese followed by 的 unless written A'0
//   A.I .me .my .you .your .self   what speakers call themselves and each other (.my0: without 的)
//   @A            the preposition (in Chinese the localiser) of a place or spot
//   &v &v.ing &v.inf &v.le          a phrase from a table: finite, gerund, infinitive, with 了
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "world/draw.h"
#include "world/english.h"
#include "world/entity.h"
#include "world/lexicon.h"
#include "world/story.h"

namespace qkv::world {

enum class Tense { past, present };

// What letters mean: capitals are entities, small letters are phrases.
struct Roles {
  std::array<int, 26> entities{};
  std::array<const Phrase*, 26> phrases{};
};

class Realiser {
 public:
  Realiser(std::span<const Entity> cast, const Roles& roles, Tense tense, PhiloxKey choices)
      : cast_(cast), roles_(roles), tense_(tense), choices_(choices) {}
  virtual ~Realiser() = default;

  void sentence(std::string_view pattern);
  void update(std::span<const Entity> cast, const Roles& roles);

  // Says it and takes it back: the text of a question that the story does not ask.
  std::string aside(std::string_view pattern);

  // Text, offsets, mentions' antecedents, partners.
  Telling finish();

  const Telling& so_far() const { return telling_; }
  size_t length() const { return telling_.sentences.size(); }

 protected:
  enum class Form { finite, gerund, infinitive, le };
  struct Dependent {
    int word;
    std::string_view relation;
    bool usual;
  };
  struct Group {
    std::string_view relation;
    std::string_view head_upos;           // of the group around this one, which a conjunct shares
    std::vector<int> heads;               // words that named no relation; one of them is the head
    bool plural = false, second = false;  // the subject's number; "you" and "I" take no -s
    Form form = Form::finite;
    int possessor_begin = -1;
    std::vector<Dependent> dependents;
  };
  struct Token {
    std::string_view relation, body;
    bool usual = false;  // the relation is the word's usual one, not the pattern's
  };
  struct Seen {
    int sentence = -9;
    int times = 0;
  };

  virtual void literal(Group& group, Token token) = 0;
  virtual int name_phrase(int entity) = 0;
  virtual int noun_phrase(int entity, char mode) = 0;
  virtual int pronoun(int entity, std::string_view which, std::string_view relation) = 0;
  virtual void possessive_mark(int head, std::string_view which) = 0;
  virtual void place_word(Group& group, const Entity& place) = 0;
  virtual void finish_sentence(StorySentence& sentence) = 0;
  virtual std::string_view phrase_text(const Phrase& phrase) const = 0;
  virtual Gender pronoun_gender(const Entity& entity) const = 0;
  virtual std::string_view between_sentences() const = 0;

  int add(std::string_view form, std::string_view lemma, std::string_view upos);
  void attach(int word, int head, std::string_view relation);
  void place(Group& group, int word, std::string_view relation, bool usual = false);
  std::vector<StoryWord>& words() { return current_.words; }
  StoryWord& word(int index) { return current_.words[static_cast<size_t>(index)]; }
  const Entity& entity(int index) const { return cast_[static_cast<size_t>(index)]; }
  int member(int entity);  // of a group, named as one of two
  bool seen(int entity) const { return seen_[static_cast<size_t>(entity)].times > 0; }
  void mention(int entity, MentionKind kind, int first, int last);
  // A choice that both languages make alike: by sentence and entity, not by what was said before.
  bool chooses(int entity, uint32_t percent, uint64_t what) const {
    const uint64_t column = static_cast<uint64_t>(entity) * 4 + what;
    return random_u32(choices_, telling_.sentences.size(), column) % 100 < percent;
  }
  Tense tense() const { return tense_; }

 private:
  int group(Group& group, std::string_view& rest);
  void subtree(Group& group, std::string_view relation, std::string_view& rest);
  int settle(Group& group);  // which word is the head, and what the others are to it
  void token(Group& group, std::string_view text);
  void entity_token(Group& group, Token token);
  void phrase_token(Group& group, std::string_view body);
  bool pronoun_is_clear(int entity) const;
  void note(int entity);  // it has been spoken of
  void link_mentions();
  void find_partners();

  std::span<const Entity> cast_;
  Roles roles_;
  Tense tense_;
  PhiloxKey choices_;
  Telling telling_;
  StorySentence current_;
  std::vector<Seen> seen_;
  std::string_view pattern_;
  int subject_ = -1;  // the sentence's latest subject
};

// Which part of speech a content word has under this relation.
std::string_view usual_upos(std::string_view relation);
std::string_view upos_of_code(char code);

class English final : public Realiser {
 public:
  using Realiser::Realiser;

 private:
  void literal(Group& group, Token token) override;
  int name_phrase(int entity) override;
  int noun_phrase(int entity, char mode) override;
  int pronoun(int entity, std::string_view which, std::string_view relation) override;
  void possessive_mark(int head, std::string_view which) override;
  void place_word(Group& group, const Entity& place) override;
  void finish_sentence(StorySentence& sentence) override;
  std::string_view phrase_text(const Phrase& phrase) const override { return phrase.en; }
  Gender pronoun_gender(const Entity& entity) const override { return entity.gender; }
  std::string_view between_sentences() const override { return " "; }
  void verb(Group& group, std::string_view base, std::string_view upos, Token token);
};

class Chinese final : public Realiser {
 public:
  using Realiser::Realiser;

 private:
  void literal(Group& group, Token token) override;
  int name_phrase(int entity) override;
  int noun_phrase(int entity, char mode) override;
  int pronoun(int entity, std::string_view which, std::string_view relation) override;
  void possessive_mark(int head, std::string_view which) override;
  void place_word(Group& group, const Entity& place) override;
  void finish_sentence(StorySentence& sentence) override;
  std::string_view phrase_text(const Phrase& phrase) const override { return phrase.zh; }
  // A cat with a name is 它, whatever "he" or "she" it is in English.
  Gender pronoun_gender(const Entity& entity) const override {
    const bool human = entity.kind == EntityKind::person || entity.kind == EntityKind::group;
    return human ? entity.gender : Gender::none;
  }
  std::string_view between_sentences() const override { return ""; }
};

}  // namespace qkv::world
