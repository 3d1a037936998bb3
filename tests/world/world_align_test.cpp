// Gold word pairs between the two languages of a sentence.
#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "world/word_links.h"
#include "world/world_support.h"

namespace qkv {
namespace {

TEST(WorldPairs, WordsOfAPairNameTheSameEntity) {
  size_t entities = 0, words = 0, paired = 0;
  for (const Story& story : some_stories()) {
    for (size_t s = 0; s < story.english.sentences.size(); ++s) {
      const StorySentence &en = story.english.sentences[s], &zh = story.chinese.sentences[s];
      std::set<size_t> met;
      for (const auto& [e, z] : word_links(en, zh).sure) {
        ASSERT_LT(e, en.words.size());
        ASSERT_LT(z, zh.words.size());
        met.insert(e);
        if (en.words[e].entity < 0 || zh.words[z].entity < 0) continue;
        ASSERT_EQ(en.words[e].entity, zh.words[z].entity)
            << en.words[e].form << " " << zh.words[z].form << ": " << story.english.text;
        ++entities;
      }
      words += en.words.size();
      paired += met.size();
    }
  }
  EXPECT_GT(entities, some_stories().size() * 5);
  EXPECT_GT(paired, words / 2);
}

// Numbers are the same digits, and words of the lexicon always have the translation that the lexicon gives.
TEST(WorldPairs, KnownWordsHaveTheirTranslations) {
  const std::map<std::string, std::set<std::string>> kKnown{
      {"capital", {"首都"}}, {"because", {"因为"}}, {"everyone", {"大家", "人", "谁"}}, {"Mr", {"先生"}},
      {"Grandma", {"奶奶"}}, {"eat", {"吃"}},       {"dance", {"跳舞", "跳"}},          {"code", {"密码"}}};
  std::map<std::string, size_t> seen;
  for (const Story& story : some_stories()) {
    for (size_t s = 0; s < story.english.sentences.size(); ++s) {
      const StorySentence &en = story.english.sentences[s], &zh = story.chinese.sentences[s];
      for (const auto& [e, z] : word_links(en, zh).sure) {
        const StoryWord &here = en.words[e], &there = zh.words[z];
        if (here.upos == "NUM" && here.form.find_first_not_of("0123456789") == std::string::npos) {
          ASSERT_EQ(here.form, there.form) << story.english.text;
        }
        const auto known = kKnown.find(here.lemma);
        const bool part = there.relation == "compound";  // 跳起舞 is one verb
        if (known == kKnown.end() || part || (there.upos == "PRON" && here.upos != "PRON")) continue;
        ASSERT_TRUE(known->second.contains(there.form)) << here.form << " " << there.form << ": " << story.english.text;
        ++seen[here.lemma];
      }
    }
  }
  for (const auto& [word, translations] : kKnown) EXPECT_GT(seen[word], 10U) << word;
}

// What only one language has may go with what its head goes with; it is never both sure and possible.
TEST(WorldPairs, SmallWordsMayGoWithTheirHeads) {
  size_t past = 0, articles = 0;
  for (const Story& story : some_stories()) {
    for (size_t s = 0; s < story.english.sentences.size(); ++s) {
      const StorySentence &en = story.english.sentences[s], &zh = story.chinese.sentences[s];
      const WordLinks links = word_links(en, zh);
      const std::set<std::pair<size_t, size_t>> sure(links.sure.begin(), links.sure.end());
      for (const auto& [e, z] : links.possible) {
        ASSERT_FALSE(sure.contains({e, z})) << en.words[e].form << " " << zh.words[z].form;
        const bool le = zh.words[z].form == "了" && zh.words[z].head > 0;
        if (le && en.words[e].upos == "VERB" && sure.contains({e, static_cast<size_t>(zh.words[z].head - 1)})) ++past;
        const bool the = en.words[e].form == "the" && en.words[e].head > 0;
        if (the && sure.contains({static_cast<size_t>(en.words[e].head - 1), z})) ++articles;
      }
    }
  }
  EXPECT_GT(past, some_stories().size());
  EXPECT_GT(articles, some_stories().size());
}

// Words that stand at other places of the trees are paired by what they mean.
TEST(WorldPairs, WordsAreFoundByTheirMeaning) {
  const std::map<std::string, std::string> kFar{
      {"nose", "鼻子"}, {"cream", "奶油"}, {"happily", "开心"}, {"after", "之后"}};
  std::map<std::string, size_t> seen, missed;
  for (const Story& story : some_stories()) {
    for (size_t s = 0; s < story.english.sentences.size(); ++s) {
      const StorySentence &en = story.english.sentences[s], &zh = story.chinese.sentences[s];
      const WordLinks links = word_links(en, zh);
      for (const auto& [word, meaning] : kFar) {
        const auto is = [](const std::vector<StoryWord>& words, const auto& wanted) {
          return std::find_if(words.begin(), words.end(), wanted) - words.begin();
        };
        const auto e = static_cast<size_t>(is(en.words, [&](const StoryWord& w) { return w.lemma == word; }));
        const auto z = static_cast<size_t>(is(zh.words, [&](const StoryWord& w) { return w.form == meaning; }));
        if (e == en.words.size() || z == zh.words.size()) continue;
        const bool found = std::find(links.sure.begin(), links.sure.end(), std::pair(e, z)) != links.sure.end();
        ++(found ? seen : missed)[word];
      }
    }
  }
  for (const auto& [word, meaning] : kFar) {
    EXPECT_GT(seen[word], 10U) << word;
    EXPECT_LT(missed[word] * 20, seen[word]) << word;
  }
}

TEST(WorldPairs, AlignmentsAreWordsAndPairsOfBothTexts) {
  const Story& story = some_stories().front();
  for (const Language source : {Language::english, Language::chinese}) {
    const std::vector<std::string> lines = split(to_alignments(story, source), '\n');
    ASSERT_EQ(lines.size(), story.english.sentences.size() + 1);
    for (size_t s = 0; s + 1 < lines.size(); ++s) {
      const Json row = parse_json(lines[s], "a line");
      const StorySentence& read = story.in(source).sentences[s];
      ASSERT_EQ(row["source_words"].size(), read.words.size());
      for (size_t w = 0; w < read.words.size(); ++w) {
        const size_t begin = row["source_words"][w][0], end = row["source_words"][w][1];
        ASSERT_EQ(row["source"].get<std::string>().substr(begin, end - begin), read.words[w].form);
      }
      for (const Json& pair : row["pairs"]) {
        ASSERT_LT(pair[0].get<size_t>(), row["source_words"].size());
        ASSERT_LT(pair[1].get<size_t>(), row["target_words"].size());
      }
    }
  }
}

// Read from Chinese, every link is that from English with its sides exchanged.
TEST(WorldPairs, AlignmentsOfBothDirectionsAreMirrored) {
  size_t sure = 0, possible = 0;
  const World world(2024);
  for (uint64_t n = 0; n < 20; ++n) {
    const Story story = world.story(n);
    const std::vector<std::string> there = split(to_alignments(story, Language::english), '\n'),
                                   back = split(to_alignments(story, Language::chinese), '\n');
    ASSERT_EQ(there.size(), back.size());
    for (size_t s = 0; s + 1 < there.size(); ++s) {
      const Json one = parse_json(there[s], "a line"), other = parse_json(back[s], "a line");
      for (const char* links : {"pairs", "possible"}) {
        Json mirrored = Json::array();
        for (const Json& pair : other[links]) mirrored.push_back({pair[1], pair[0]});
        EXPECT_EQ(one[links], mirrored) << links << " of " << there[s];
      }
      EXPECT_EQ(one["source"], other["target"]);
      EXPECT_EQ(one["source_words"], other["target_words"]);
      sure += one["pairs"].size();
      possible += one["possible"].size();
    }
  }
  EXPECT_GT(sure, 100U);
  EXPECT_GT(possible, 20U);
}

}  // namespace
}  // namespace qkv
