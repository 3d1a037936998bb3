// What makes heads look: verbs far from subjects that are named once, tastes that follow from names, spells that come again.
#include <map>
#include <set>

#include "world/world_support.h"

namespace qkv {
namespace {

World of_kind(const std::string& kind) {
  return World(11, std::vector<std::string>{kind});
}

// The subject of the sentence's root, from 0; -1: none.
int subject_of_root(const StorySentence& sentence, int root) {
  for (size_t w = 0; w < sentence.words.size(); ++w) {
    if (sentence.words[w].relation == "nsubj" && sentence.words[w].head == root + 1) return static_cast<int>(w);
  }
  return -1;
}

int root_of(const StorySentence& sentence) {
  for (size_t w = 0; w < sentence.words.size(); ++w) {
    if (sentence.words[w].head == 0) return static_cast<int>(w);
  }
  return -1;
}

TEST(WorldHabits, VerbsStandFarFromSubjectsThatAreNamedOnce) {
  const World world = of_kind("habits");
  for (uint64_t i = 0; i < 300; ++i) {
    const Story story = world.story(i);
    for (const Language language : kBoth) {
      std::map<int, int> named;
      for (const Mention& mention : story.in(language).mentions) {
        if (mention.kind == MentionKind::name) ++named[mention.entity];
      }
      for (const StorySentence& sentence : story.in(language).sentences) {
        const int root = root_of(sentence), subject = subject_of_root(sentence, root);
        ASSERT_GE(subject, 0) << story.in(language).text;
        EXPECT_GE(root - subject, 4) << story.in(language).text;
        EXPECT_EQ(named[sentence.words[static_cast<size_t>(subject)].entity], 1) << story.in(language).text;
      }
    }
  }
}

TEST(WorldHabits, WhatFollowsAVerbFollowsFromItsSubject) {
  const World world = of_kind("habits");
  for (const Language language : kBoth) {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> objects;  // of subject and verb
    std::map<std::string, std::set<std::string>> of_verb;
    for (uint64_t i = 0; i < 2000; ++i) {
      const Story story = world.story(i);
      for (const StorySentence& sentence : story.in(language).sentences) {
        const int root = root_of(sentence), subject = subject_of_root(sentence, root);
        const StoryWord& verb = sentence.words[static_cast<size_t>(root)];
        for (size_t w = static_cast<size_t>(root) + 1; w < sentence.words.size(); ++w) {
          const StoryWord& object = sentence.words[w];
          if (object.relation != "obj" || object.head != root + 1 || object.upos != "NOUN") continue;
          std::string what;
          for (size_t k = static_cast<size_t>(root) + 1; k <= w; ++k) what += sentence.words[k].lemma + " ";
          objects[{sentence.words[static_cast<size_t>(subject)].form, verb.lemma}].insert(what);
          of_verb[verb.lemma].insert(what);
        }
      }
    }
    for (const std::string& verb : language == Language::english ? std::vector<std::string>{"drink", "eat", "keep"}
                                                                 : std::vector<std::string>{"喝", "吃", "养"}) {
      EXPECT_GT(of_verb[verb].size(), 10U) << verb;
      for (const auto& [who, what] : objects) {
        if (who.second != verb) continue;
        EXPECT_EQ(what.size(), 1U) << who.first << " " << verb << " " << *what.begin();
      }
    }
  }
}

// Four words or more, and at once the same again.
bool comes_again(const StorySentence& sentence) {
  const std::vector<StoryWord>& words = sentence.words;
  for (size_t length = 4; 2 * length <= words.size(); ++length) {
    for (size_t begin = 0; begin + 2 * length <= words.size(); ++begin) {
      size_t same = 0;
      while (same < length && words[begin + same].form == words[begin + length + same].form) ++same;
      if (same == length) return true;
    }
  }
  return false;
}

TEST(WorldSpells, AreOftenSaidTwiceInOneBreath) {
  const World world = of_kind("password");
  for (const Language language : kBoth) {
    int stories = 0;
    for (uint64_t i = 0; i < 300; ++i) {
      const Story story = world.story(i);
      for (const StorySentence& sentence : story.in(language).sentences) {
        if (!comes_again(sentence)) continue;
        ++stories;
        break;
      }
    }
    EXPECT_GT(stories, 120);
  }
}

}  // namespace
}  // namespace qkv
