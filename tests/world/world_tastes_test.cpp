// What makes heads look: verbs whose objects follow from who their subject is, and spells that come again.
#include <map>
#include <set>

#include "world/world_support.h"

namespace qkv {
namespace {

World of_kind(const std::string& kind) {
  return World(11, std::vector<std::string>{kind});
}

// Objects of the neighbours' verbs, by subject and verb.
struct Tastes {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> of_subject;
  std::map<std::string, std::set<std::string>> of_verb;
  std::set<size_t> distances;  // from the subject to its verb, in words

  void add(const StorySentence& sentence) {
    const std::vector<StoryWord>& words = sentence.words;
    for (size_t object = 0; object < words.size(); ++object) {
      if (words[object].relation != "obj" || words[object].upos != "NOUN") continue;
      const auto verb = static_cast<size_t>(words[object].head - 1);
      for (size_t subject = 0; subject < verb; ++subject) {
        const bool named = words[subject].relation == "nsubj" && words[subject].upos == "PROPN";
        if (!named || words[subject].head != words[object].head || verb > object) continue;
        std::string what;
        for (size_t k = verb + 1; k <= object; ++k) what += words[k].lemma + " ";
        of_subject[{words[subject].form, words[verb].lemma}].insert(what);
        of_verb[words[verb].lemma].insert(what);
        distances.insert(verb - subject);
      }
    }
  }
};

TEST(WorldTastes, WhatAVerbTakesFollowsFromItsSubject) {
  const World world = of_kind("neighbours");
  for (const Language language : kBoth) {
    Tastes tastes;
    for (uint64_t i = 0; i < 3000; ++i) {
      const Story story = world.story(i);
      for (const StorySentence& sentence : story.in(language).sentences) tastes.add(sentence);
    }
    // Verbs that no habit and no gesture has.
    const auto verbs = language == Language::english ? std::vector<std::string>{"mend", "sell", "buy"}
                                                     : std::vector<std::string>{"卖", "买"};
    for (const std::string& verb : verbs) {
      EXPECT_GT(tastes.of_verb[verb].size(), 10U) << verb;
      size_t people = 0;
      for (const auto& [who, what] : tastes.of_subject) {
        if (who.second != verb) continue;
        ++people;
        EXPECT_EQ(what.size(), 1U) << who.first << " " << verb;
      }
      EXPECT_GT(people, 50U) << verb;
    }
    // Beside the subject, behind an adverb, behind a place or another name.
    for (const size_t near : {1U, 2U}) EXPECT_TRUE(tastes.distances.contains(near)) << near;
    EXPECT_GE(*tastes.distances.rbegin(), 5U);
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
