// Stories shared by the world's tests, and a CoNLL-U reader independent of the writer.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "world/labels.h"
#include "world/world.h"

namespace qkv {

inline constexpr Language kBoth[] = {Language::english, Language::chinese};

inline std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end = text.find(at); end != std::string_view::npos; end = text.find(at, begin)) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  out.emplace_back(text.substr(begin));
  return out;
}

struct ConlluWord {
  std::string form, lemma, upos, feats, relation;
  int head = 0;
  bool space_after = true;
};

struct ConlluSentence {
  std::string text;
  std::vector<ConlluWord> words;  // word 1 is at 0
};

inline std::vector<ConlluSentence> read_conllu(const std::string& text) {
  std::vector<ConlluSentence> out;
  ConlluSentence sentence;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("# text = ")) sentence.text = line.substr(9);
    if (line.starts_with('#')) continue;
    if (line.empty()) {
      if (!sentence.words.empty()) out.push_back(std::move(sentence));
      sentence = {};
      continue;
    }
    const std::vector<std::string> cells = split(line, '\t');
    EXPECT_EQ(cells.size(), 10U) << line;
    if (cells.size() != 10) continue;
    EXPECT_EQ(cells[0], std::to_string(sentence.words.size() + 1)) << line;
    for (const std::string& cell : cells) EXPECT_FALSE(cell.empty()) << line;
    sentence.words.push_back({.form = cells[1],
                              .lemma = cells[2],
                              .upos = cells[3],
                              .feats = cells[5],
                              .relation = cells[7],
                              .head = std::stoi(cells[6]),
                              .space_after = cells[9].find("SpaceAfter=No") == std::string::npos});
  }
  return out;
}

// Made once for all tests of the program.
inline const std::vector<Story>& some_stories() {
  static const std::vector<Story> stories = [] {
    std::vector<Story> out;
    const World world(2024);
    for (uint64_t i = 0; i < 5000; ++i) out.push_back(world.story(i));
    return out;
  }();
  return stories;
}

}  // namespace qkv
