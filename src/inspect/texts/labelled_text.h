// Texts with gold labels: dependencies and coreference. From CoNLL-U files, GAP's TSV files, or the built-in world.
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
    int head = -1;              // word it depends on; -1: the root, or unknown
    std::string relation = {};
  };
  struct Mention {
    size_t word = 0;                // its head word
    std::string kind = {};          // "name", "noun" or "pronoun"
    std::vector<size_t> same = {};  // earlier mentions of the same entity
  };
  // A pronoun and two candidate names (GAP): words of this text.
  struct Choice {
    size_t pronoun = 0, right = 0, wrong = 0;
    bool feminine = false;
  };

  std::string text;
  std::vector<Word> words;
  std::vector<Mention> mentions = {};
  std::vector<Choice> choices = {};
  std::vector<size_t> sentences = {};  // first word of each; empty: one sentence, or not known
};

// One text per sentence. An Error names the line where words and text do not match.
std::vector<LabelledText> read_conllu(std::string_view content, const std::string& what);

// One text per line, where exactly one of the two names is meant.
std::vector<LabelledText> read_gap(std::string_view content, const std::string& what);

LabelledText labelled(const AnnotatedText& annotated);

}  // namespace qkv
