// A generated story: the text in English and in Chinese with linguistic annotations. Labels are produced together with
// the text, never derived from it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class Language { english, chinese };

namespace world {
struct Languages {
  bool english = true, chinese = true;
};
}  // namespace world

struct StoryWord {
  std::string form, lemma;
  std::string_view upos, relation;  // Universal Dependencies
  std::string feats;
  int head = 0;     // from 1; 0 for the root
  int entity = -1;  // of the head word of a mention
  bool space_after = true;
  size_t begin = 0, end = 0;  // bytes in AnnotatedText::text
};

struct StorySentence {
  std::vector<StoryWord> words;
  size_t begin = 0, end = 0;
};

enum class MentionKind { name, noun, pronoun };

struct Mention {
  int entity = -1;
  MentionKind kind = MentionKind::name;
  size_t sentence = 0, first = 0, last = 0;  // words [first, last], from 0
  size_t begin = 0, end = 0;
  // Of a pronoun: the nearest name or noun before it ("they" may have several). Of a repeated name: its first mention.
  std::vector<size_t> antecedents;
};

// A question about the story. The answer is the span [begin, end) of the text. If the story itself asks the question,
// the text before `asked_at` is the context for the answer.
struct Answer {
  std::string question, answer;
  size_t begin = 0, end = 0;
  size_t asked_at = std::string::npos;
};

// Byte offsets of an opening and its closing bracket or quote.
struct BracketPair {
  size_t open = 0, close = 0;
};

struct AnnotatedText {
  std::string text;
  std::vector<StorySentence> sentences;
  std::vector<Mention> mentions;
  std::vector<Answer> answers;
  std::vector<BracketPair> brackets;
};

// Sentence k in one language is the translation of sentence k in the other.
struct Story {
  std::string_view kind;
  AnnotatedText english, chinese;

  const AnnotatedText& in(Language language) const { return language == Language::english ? english : chinese; }
};

}  // namespace qkv
