// Sentences with 小 in three words: 大小 (size), 小心 (take care), 小明 (a name). A token is a character.
#pragma once

#include "labs/words/vectors.h"
#include "labs/words/word_list.h"
#include "world/draw.h"

namespace qkv {

class ThreeWords {
 public:
  static constexpr int32_t kWords = 3;

  ThreeWords();

  struct Text {
    std::vector<int32_t> ids;
    std::vector<size_t> at;      // where 小 stands
    std::vector<int32_t> words;  // which of the three words it is in
  };
  // Some sentences, one after the other.
  Text text(world::Draw& draw, int32_t sentences) const;
  int32_t character() const { return character_; }  // 小
  int64_t vocabulary() const { return list_.size(); }

 private:
  using Slot = std::vector<std::vector<int32_t>>;  // one of these
  struct Form {
    int32_t word = 0;
    std::vector<Slot> slots;
  };
  Form form(int32_t word, std::initializer_list<const char*> slots);

  WordList list_;
  int32_t character_ = 0;
  std::vector<Form> forms_;
};

// Texts that are only read: the means of the three words come from `known`, what is measured from `asked`.
struct WordsExam {
  struct Part {
    TrainBatch batch;
    std::vector<size_t> rows;  // where 小 stands
    std::vector<int32_t> words;
  };
  Part known, asked;
};
WordsExam words_exam(const ThreeWords& task, uint64_t seed, int64_t texts);

struct WordsSchool {
  int64_t steps = 0, texts = 0;
  bool shuffled = false;  // the characters of a text in random order
  bool alone = false;     // attention sees nothing but the token itself
};
// By depth, 0 being the embedding.
struct WordsRead {
  std::vector<double> explained, right;
};
// At the start, ten times on the way and at the end.
std::vector<WordsRead> learn_words(const LabContext& lab, const ThreeWords& task, const WordsExam& exam,
                                   const WordsSchool& school, uint64_t seed,
                                   const std::function<void(const Model&, int64_t done)>& on_read);

}  // namespace qkv
