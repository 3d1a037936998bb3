// The stream: a story is a function of seed and index; nothing empty, untranslated or repeated; a large vocabulary.
#include <utf8proc.h>

#include <set>
#include <unordered_set>

#include "world/ngrams.h"
#include "world/world_support.h"

namespace qkv {
namespace {

TEST(WorldStream, AStoryDependsOnSeedAndIndexAlone) {
  const World world(7);
  const Story first = world.story(41);
  for (const uint64_t i : {uint64_t{900}, uint64_t{3}, uint64_t{41}, ~uint64_t{0}}) static_cast<void>(world.story(i));
  const Story again = World(7).story(41);
  EXPECT_EQ(first.english.text, again.english.text);
  EXPECT_EQ(first.chinese.text, again.chinese.text);
  EXPECT_EQ(to_conllu(first.chinese, "d"), to_conllu(again.chinese, "d"));
  EXPECT_NE(first.english.text, World(8).story(41).english.text);
  EXPECT_NE(first.english.text, world.story(42).english.text);
}

TEST(WorldStream, OneLanguageAloneTellsTheSameStory) {
  const World world(9);
  for (uint64_t i = 0; i < 300; ++i) {
    const Story both = world.story(i);
    ASSERT_EQ(world.text(i, Language::english), both.english.text);
    ASSERT_EQ(world.text(i, Language::chinese), both.chinese.text);
  }
}

TEST(WorldStream, EveryKindOccursAndSentencesAlign) {
  std::set<std::string_view> kinds;
  for (const Story& story : some_stories()) {
    kinds.insert(story.kind);
    ASSERT_FALSE(story.english.sentences.empty());
    ASSERT_EQ(story.english.sentences.size(), story.chinese.sentences.size()) << story.english.text;
    const std::vector<std::string> lines = split(to_pairs(story), '\n');
    ASSERT_EQ(lines.size(), story.english.sentences.size() + 1);
    for (size_t s = 0; s + 1 < lines.size(); ++s) ASSERT_EQ(split(lines[s], '\t').size(), 2U) << lines[s];
  }
  EXPECT_EQ(kinds.size(), story_kinds().size());
  EXPECT_GE(kinds.size(), 12U);
}

bool is_han(utf8proc_int32_t sign) {
  return sign >= 0x4E00 && sign <= 0x9FFF;
}

TEST(WorldStream, EachLanguageHasItsOwnSignsAndNoPlaceholders) {
  for (const Story& story : some_stories()) {
    for (const Language language : {Language::english, Language::chinese}) {
      const std::string& text = story.in(language).text;
      ASSERT_FALSE(text.empty());
      ASSERT_EQ(text.find_first_of("{}[]*_@&%$#^~|\\<>\t\n"), std::string::npos) << text;
      ASSERT_EQ(text.find("  "), std::string::npos) << text;
      for (size_t at = 0; at < text.size();) {
        utf8proc_int32_t sign = 0;
        const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                           static_cast<utf8proc_ssize_t>(text.size() - at), &sign);
        ASSERT_GT(size, 0) << text;
        at += static_cast<size_t>(size);
        if (language == Language::english) {
          ASSERT_TRUE(sign < 0x80 || sign == 0xD7 || sign == 0xF7) << text;
        } else {
          const bool letter = (sign >= 'A' && sign <= 'Z') || (sign >= 'a' && sign <= 'z');
          ASSERT_FALSE(letter || sign == '.' || sign == ',' || sign == '"') << text;
          ASSERT_TRUE(is_han(sign) || sign < 0x80 || sign == 0xD7 || sign == 0xF7 || sign >= 0x2000) << text;
        }
      }
    }
  }
}

TEST(WorldStream, KindsCanBeChosen) {
  const std::vector<std::string> kinds{"sums", "echo"};
  const World world(3, kinds);
  std::set<std::string_view> seen;
  for (uint64_t i = 0; i < 200; ++i) seen.insert(world.story(i).kind);
  EXPECT_EQ(seen, (std::set<std::string_view>{"sums", "echo"}));
  const std::vector<std::string> all(story_kinds().begin(), story_kinds().end());
  EXPECT_EQ(World(3, all).text(7, Language::english), World(3).text(7, Language::english));
}

TEST(WorldNgrams, CountsWordsOrCharactersWithinAText) {
  SeenNgrams words(Language::english, 3);
  words.add("the cat sat down");
  words.add("a dog");
  const SeenNgrams::Share share = words.of("the cat sat up and sat down a");
  EXPECT_EQ(share.all, 6U);
  EXPECT_EQ(share.seen, 1U);  // "sat down a" is in no one text
  EXPECT_EQ(words.of("the cat").all, 0U);
  SeenNgrams characters(Language::chinese, 2);
  characters.add("猫坐下");
  EXPECT_EQ(characters.of("狗坐下了").all, 3U);
  EXPECT_EQ(characters.of("狗坐下了").seen, 1U);
}

// Templates cannot be learnt by heart: docs/world.md has the shares for more stories.
TEST(WorldNgrams, MostOfAStoryIsNew) {
  for (const auto& [language, most] : {std::pair(Language::english, 0.20), std::pair(Language::chinese, 0.45)}) {
    SeenNgrams seen(language, 8);
    const World world(1), other(2);
    for (uint64_t i = 0; i < 5000; ++i) seen.add(world.text(i, language));
    SeenNgrams::Share sum;
    for (uint64_t i = 0; i < 500; ++i) {
      const SeenNgrams::Share share = seen.of(other.text(i, language));
      sum.seen += share.seen;
      sum.all += share.all;
    }
    EXPECT_LT(static_cast<double>(sum.seen), most * static_cast<double>(sum.all));
  }
}

TEST(WorldStream, KnowsThousandsOfWordsAndHardlyRepeatsALine) {
  const World world(1);
  std::unordered_set<std::string> english, chinese, lines;
  constexpr uint64_t kLines = 20'000;
  for (uint64_t i = 0; i < kLines; ++i) {
    const Story story = world.story(i);
    lines.insert(story.english.text);
    for (const StorySentence& sentence : story.english.sentences) {
      for (const StoryWord& word : sentence.words) english.insert(word.lemma);
    }
    for (const StorySentence& sentence : story.chinese.sentences) {
      for (const StoryWord& word : sentence.words) chinese.insert(word.form);
    }
  }
  const auto is_number = [](const std::string& word) { return word[0] >= '0' && word[0] <= '9'; };
  std::erase_if(english, is_number);
  std::erase_if(chinese, is_number);
  RecordProperty("english", static_cast<int>(english.size()));
  RecordProperty("chinese", static_cast<int>(chinese.size()));
  RecordProperty("repeated", static_cast<int>(kLines - lines.size()));
  EXPECT_GT(english.size(), 2000U);
  EXPECT_GT(chinese.size(), 5000U);
  EXPECT_EQ(lines.size(), kLines);
}

}  // namespace
}  // namespace qkv
