// Surface realisation: turns patterns into sentences with dependency trees. A pattern is a dependency tree written in
// word order:
//
//   nsubj:A put* obj:B [obl beside C] [advcl because nsubj:B~ be* hot/J] .
//
//   [rel ...]               subtree; its head is the only word without a relation (of two such words, an auxiliary
//                           or adverb is not the head)
//   rel:word                dependent of one word; function words and punctuation have a default relation
//   word/J                  part of speech, if it is not the default of the relation: N noun, V verb, J adjective,
//                           R adverb, P preposition, U pronoun, D determiner, M number, X auxiliary, T particle,
//                           I interjection, S symbol, E proper noun, C conjunction
//   word^lemma              lemma, if it is not in the tables
//   put*                    verb inflected for tense and subject; in Chinese, where the aspect particle goes
//   A                       entity, in the usual form at this point: "Tom", "he", "a red book", "the book"
//   A! A~ A+ A-             in full; as a pronoun; with "a"; with "the"
//   A# A##                  bare; bare with its adjective
//   A% A? A=                as a kind ("cats"); as a predicate ("a kind baker"; "lazy cat"): not a mention
//   A^                      its measure word alone (Chinese)
//   A' A'~ A'!              possessive: "his" or "Tom's"; in Chinese followed by 的 unless written A'0
//   A.I .me .my .you .your .self   pronouns inside direct speech (.my0: without 的)
//   @A                      preposition (Chinese: localiser) of a place or spot
//   &v &v.ing &v.inf &v.le  phrase from a table: finite, gerund, infinitive, with 了
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

// Meaning of the letters in patterns: capitals are entities, small letters are phrases.
struct Roles {
  std::array<int, 26> entities{};
  std::array<const Phrase*, 26> phrases{};
};

class Realiser {
 public:
  Realiser(std::span<const Entity> cast, const Roles& roles, Tense tense, PhiloxKey choices)
      : cast_(cast), roles_(roles), tense_(tense), choices_(choices) {}
  virtual ~Realiser() = default;

  // `adverbial`: a phrase that is not in the pattern: after verb and objects in English, or between subject and verb if
  // it is one word; after the subject in Chinese.
  void sentence(std::string_view pattern, const Phrase* adverbial = nullptr);
  void update(std::span<const Entity> cast, const Roles& roles);

  // The text of a sentence, without adding it to the story: for questions that the story does not ask.
  std::string sentence_text(std::string_view pattern);

  // Fills in the text, the offsets, the antecedents and the bracket pairs.
  AnnotatedText finish();

  size_t length() const { return annotated_.sentences.size(); }

 protected:
  enum class Form { finite, gerund, infinitive, le };
  struct Dependent {
    int word;
    std::string_view relation;
    bool usual;
  };
  struct Group {
    std::string_view relation;
    std::string_view head_upos;           // of the enclosing group, shared by a conjunct
    std::vector<int> heads;               // words without a relation; one of them is the head
    bool plural = false, second = false;  // of the subject; second: "you" and "I" take no -s
    Form form = Form::finite;
    int possessor_begin = -1;
    std::vector<Dependent> dependents;
  };
  struct Token {
    std::string_view relation, body;
    bool usual = false;  // the relation is the default of the word, not given by the pattern
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
  virtual void add_place_word(Group& group, const Entity& place) = 0;
  virtual void finish_sentence(StorySentence& sentence) = 0;
  virtual std::string_view phrase_text(const Phrase& phrase) const = 0;
  virtual Gender pronoun_gender(const Entity& entity) const = 0;
  virtual std::string_view between_sentences() const = 0;
  // Whether it stands between these two tokens of the main clause.
  virtual bool adverbial_stands(std::string_view before, std::string_view after, bool verb_seen) const = 0;

  int add(std::string_view form, std::string_view lemma, std::string_view upos);
  void attach(int word, int head, std::string_view relation);
  void place(Group& group, int word, std::string_view relation, bool usual = false);
  std::vector<StoryWord>& words() { return current_.words; }
  StoryWord& word(int index) { return current_.words[static_cast<size_t>(index)]; }
  const Entity& entity(int index) const { return cast_[static_cast<size_t>(index)]; }
  int member(int entity);  // adds the name of one member of a group
  bool seen(int entity) const { return seen_[static_cast<size_t>(entity)].times > 0; }
  void mention(int entity, MentionKind kind, int first, int last);
  // A random choice that is equal in both languages: it depends on sentence and entity only.
  bool chooses(int entity, uint32_t percent, uint64_t what) const {
    const uint64_t column = static_cast<uint64_t>(entity) * 4 + what;
    return random_u32(choices_, annotated_.sentences.size(), column) % 100 < percent;
  }
  Tense tense() const { return tense_; }
  bool adverbial_is_word() const { return phrase_text(*adverbial_).find(' ') == std::string_view::npos; }

 private:
  int group(Group& group, std::string_view& rest);
  void subtree(Group& group, std::string_view relation, std::string_view& rest);
  int choose_head(Group& group);  // and attaches the other words to it
  void token(Group& group, std::string_view text);
  void entity_token(Group& group, Token token);
  void phrase_token(Group& group, std::string_view body);
  void add_phrase(Group& group, const Phrase& phrase);
  bool pronoun_is_clear(int entity) const;
  void mark_seen(int entity);
  void link_mentions();
  void find_brackets();

  std::span<const Entity> cast_;
  Roles roles_;
  Tense tense_;
  PhiloxKey choices_;
  AnnotatedText annotated_;
  StorySentence current_;
  std::vector<Seen> seen_;
  std::string_view pattern_;
  const Phrase* adverbial_ = nullptr;
  int subject_ = -1;  // latest subject of the sentence
};

// The default part of speech of a content word with this relation.
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
  void add_place_word(Group& group, const Entity& place) override;
  void finish_sentence(StorySentence& sentence) override;
  std::string_view phrase_text(const Phrase& phrase) const override { return phrase.en; }
  Gender pronoun_gender(const Entity& entity) const override { return entity.gender; }
  std::string_view between_sentences() const override { return " "; }
  bool adverbial_stands(std::string_view before, std::string_view after, bool verb_seen) const override {
    if (verb_seen) return after == "." || after == ",";
    return adverbial_is_word() && before.starts_with("nsubj:") && after.ends_with('*');  // "Tom quickly ran"
  }
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
  void add_place_word(Group& group, const Entity& place) override;
  void finish_sentence(StorySentence& sentence) override;
  std::string_view phrase_text(const Phrase& phrase) const override { return phrase.zh; }
  // A named animal is 它, whether it is "he" or "she" in English.
  Gender pronoun_gender(const Entity& entity) const override {
    const bool human = entity.kind == EntityKind::person || entity.kind == EntityKind::group;
    return human ? entity.gender : Gender::none;
  }
  std::string_view between_sentences() const override { return ""; }
  bool adverbial_stands(std::string_view before, std::string_view, bool) const override {
    return before.starts_with("nsubj:");
  }
};

}  // namespace qkv::world
