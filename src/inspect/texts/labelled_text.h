// Texts whose words carry gold labels: who depends on whom, who is meant. From CoNLL-U files, GAP's TSV files, or the
// built-in world.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "world/story.h"

namespace qkv {

struct LabelledText {
  struct Word {
    size_t begin = 0, end = 0;  // bytes of the text
    int head = -1;              // which word it depends on; -1: the root, or not known
    std::string relation = {};
  };
  struct Mention {
    size_t word = 0;                // its head word
    std::string kind = {};          // "name", "noun" or "pronoun"
    std::vector<size_t> same = {};  // earlier mentions of the same
  };
  // Who of two is meant (GAP): words of this text.
  struct Choice {
    size_t pronoun = 0, right = 0, wrong = 0;
    bool feminine = false;
  };

  std::string text;
  std::vector<Word> words;
  std::vector<Mention> mentions = {};
  std::vector<Choice> choices = {};
};

// One text a sentence. An Error names the line where words and text part.
std::vector<LabelledText> read_conllu(std::string_view content, const std::string& what);

// One text a line, those where exactly one of the two names is meant.
std::vector<LabelledText> read_gap(std::string_view content, const std::string& what);

LabelledText labelled(const AnnotatedText& annotated);

}  // namespace qkv
