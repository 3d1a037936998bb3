// What the built-in world hands out: a story told in English and in Chinese, with everything there is to know about
// its words. Labels are made together with the text, never found in it afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class Language { english, chinese };

struct StoryWord {
  std::string form, lemma;
  std::string_view upos, relation;  // Universal Dependencies
  std::string feats;
  int head = 0;     // 1 is the sentence's first word, 0 the root's head
  int entity = -1;  // whom or what a mention's head word stands for
  bool space_after = true;
  size_t begin = 0, end = 0;  // bytes of the telling's text
};

struct StorySentence {
  std::vector<StoryWord> words;
  size_t begin = 0, end = 0;
};

enum class MentionKind { name, noun, pronoun };

struct Mention {
  int entity = -1;
  MentionKind kind = MentionKind::name;
  size_t sentence = 0, first = 0, last = 0;  // words first to last, counted from 0
  size_t begin = 0, end = 0;
  // A pronoun's: the nearest naming before it ("they" may have several). A repeated name's: its first mention.
  std::vector<size_t> antecedents;
};

// A question about the story; the answer stands in the text at [begin, end). Where the story itself asks it, the text
// before `asked_at` is what one needs to answer.
struct Answer {
  std::string question, answer;
  size_t begin = 0, end = 0;
  size_t asked_at = std::string::npos;
};

// A bracket or quote and its partner, as bytes of the text.
struct Partners {
  size_t open = 0, close = 0;
};

struct Telling {
  std::string text;
  std::vector<StorySentence> sentences;
  std::vector<Mention> mentions;
  std::vector<Answer> answers;
  std::vector<Partners> partners;
};

// Sentence k of one telling is the translation of sentence k of the other.
struct Story {
  std::string_view kind;
  Telling english, chinese;

  const Telling& in(Language language) const { return language == Language::english ? english : chinese; }
};

}  // namespace qkv
