// Checks the language with rules independent of the generator: articles, agreement, facts, sums.
#include <algorithm>
#include <set>

#include "world/lexicon.h"
#include "world/world_support.h"

namespace qkv {
namespace {

// "a" or "an" by sound; the exceptions are listed independently of the generator.
TEST(WorldEnglish, SaysAnBeforeAVowelSound) {
  const std::set<std::string> kAnAnyway{"hour", "hourglass", "honest"};
  const std::set<std::string> kAAnyway{"uniform",    "useful",          "ukulele",  "unicorn",
                                       "university", "unusual-looking", "European", "one"};
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    for (const StorySentence& sentence : story.english.sentences) {
      for (size_t i = 0; i + 1 < sentence.words.size(); ++i) {
        const std::string& form = sentence.words[i].form;
        if (form != "a" && form != "A" && form != "an" && form != "An") continue;
        const std::string& next = sentence.words[i + 1].form;
        const bool vowel = std::string("aeiouAEIOU").find(next[0]) != std::string::npos;
        const bool an = kAnAnyway.contains(next) || (vowel && !kAAnyway.contains(next));
        ASSERT_EQ(form.size() == 2, an) << form << " " << next << " in " << story.english.text;
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, some_stories().size() / 2);
}

bool is_plural(const ConlluSentence& sentence, size_t subject) {
  const ConlluWord& word = sentence.words[subject];
  static const std::set<std::string> kPlural{"they", "we", "you", "i"};
  std::string lower = word.form;
  lower[0] = static_cast<char>(lower[0] | 0x20);
  if (word.upos == "PRON") return kPlural.contains(lower);
  for (size_t i = 0; i < sentence.words.size(); ++i) {
    if (sentence.words[i].head == static_cast<int>(subject) + 1 && sentence.words[i].relation == "conj") return true;
  }
  return word.upos == "NOUN" && word.form != word.lemma && lower != word.lemma;
}

// The word that carries the tense: the first auxiliary, else the copula, else the verb.
TEST(WorldEnglish, VerbsAgreeWithTheirSubjects) {
  static const std::set<std::string> kSameInThePast{"put",  "cost",   "read", "cut",  "hit", "set",
                                                    "shut", "spread", "let",  "hurt", "bet", "quit"};
  static const std::set<std::string> kModal{"will", "can", "could", "would", "must", "should", "may", "might"};
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    for (const ConlluSentence& sentence : read_conllu(to_conllu(story.english, "d"))) {
      const auto& words = sentence.words;
      for (size_t s = 0; s < words.size(); ++s) {
        if (words[s].relation != "nsubj" || words[s].upos == "NUM" || words[s].upos == "SYM") continue;
        const int head = words[s].head;
        const ConlluWord* finite = nullptr;
        for (const ConlluWord& word : words) {
          if (word.head == head && (word.relation.starts_with("aux") || word.relation == "cop") && !finite)
            finite = &word;
        }
        if (!finite && words[static_cast<size_t>(head - 1)].upos == "VERB")
          finite = &words[static_cast<size_t>(head - 1)];
        if (!finite || kModal.contains(finite->lemma)) continue;
        std::string form = finite->form;
        form[0] = static_cast<char>(form[0] | 0x20);
        const bool plural = is_plural(sentence, s);
        const bool first = words[s].form == "I";
        ++seen;
        if (finite->lemma == "be") {
          const std::set<std::string> good = first    ? std::set<std::string>{"am", "was"}
                                             : plural ? std::set<std::string>{"are", "were"}
                                                      : std::set<std::string>{"is", "was"};
          ASSERT_TRUE(good.contains(form)) << words[s].form << " " << form << " in: " << sentence.text;
        } else if (plural) {
          ASSERT_FALSE(form == finite->lemma + "s" || form == finite->lemma + "es" || form == "has")
              << words[s].form << " " << form << " in: " << sentence.text;
        } else {
          ASSERT_TRUE(form != finite->lemma || kSameInThePast.contains(form))
              << words[s].form << " " << form << " in: " << sentence.text;
        }
      }
    }
  }
  EXPECT_GT(seen, 2 * some_stories().size());
}

TEST(WorldEnglish, EveryVerbIsAFormOfItsLemma) {
  for (const Story& story : some_stories()) {
    for (const StorySentence& sentence : story.english.sentences) {
      for (const StoryWord& word : sentence.words) {
        if (word.upos != "VERB") continue;
        std::string form = word.form;
        form[0] = static_cast<char>(form[0] | 0x20);
        ASSERT_EQ(form[0] == word.lemma[0] || word.lemma == "go" || word.lemma == "be" || word.lemma == "eat", true)
            << word.form << " of " << word.lemma;
        ASSERT_FALSE(form == word.lemma && (form.ends_with("ed") || form.ends_with("ing")) && form != "need" &&
                     form != "feed" && form != "sing" && form != "ring" && form != "bring" && form != "swing")
            << form << " has no lemma: " << story.english.text;
      }
    }
  }
}

TEST(WorldEnglish, SentencesBeginWithACapitalAndEnd) {
  for (const Story& story : some_stories()) {
    for (const StorySentence& sentence : story.english.sentences) {
      std::string text = story.english.text.substr(sentence.begin, sentence.end - sentence.begin);
      ASSERT_TRUE(text.ends_with('.') || text.ends_with('?') || text.ends_with('!') || text.ends_with('"') ||
                  text.ends_with(')'))
          << text;
      while (text[0] == '"' || text[0] == '(') text.erase(0, 1);
      ASSERT_TRUE((text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= '0' && text[0] <= '9')) << text;
    }
  }
}

// Well-known facts.
TEST(WorldFacts, CapitalsAreRight) {
  const std::map<std::string, std::string> kKnown{
      {"China", "Beijing"},     {"Japan", "Tokyo"},        {"France", "Paris"},
      {"Germany", "Berlin"},    {"Italy", "Rome"},         {"Spain", "Madrid"},
      {"Egypt", "Cairo"},       {"Kenya", "Nairobi"},      {"Brazil", "Brasilia"},
      {"Canada", "Ottawa"},     {"Australia", "Canberra"}, {"India", "New Delhi"},
      {"Russia", "Moscow"},     {"Turkey", "Ankara"},      {"Norway", "Oslo"},
      {"Sweden", "Stockholm"},  {"Poland", "Warsaw"},      {"Greece", "Athens"},
      {"Peru", "Lima"},         {"Chile", "Santiago"},     {"Morocco", "Rabat"},
      {"Switzerland", "Bern"},  {"Vietnam", "Hanoi"},      {"Thailand", "Bangkok"},
      {"Kazakhstan", "Astana"}, {"Myanmar", "Naypyidaw"},  {"New Zealand", "Wellington"},
      {"Nigeria", "Abuja"},     {"Pakistan", "Islamabad"}, {"Mongolia", "Ulaanbaatar"}};
  size_t checked = 0;
  std::set<std::string_view> names;
  for (const world::Country& row : world::countries()) {
    EXPECT_TRUE(names.insert(row.en).second) << row.en;
    EXPECT_TRUE(names.insert(row.capital_zh).second) << row.capital_zh;
    const auto known = kKnown.find(std::string(row.en));
    if (known == kKnown.end()) continue;
    EXPECT_EQ(row.capital, known->second);
    ++checked;
  }
  EXPECT_EQ(checked, kKnown.size());
}

TEST(WorldFacts, StoriesNameTheRightCapital) {
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    const std::string& text = story.english.text;
    const std::string_view kMark = "the capital of ";
    for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
      std::string_view rest = std::string_view(text).substr(at + kMark.size());
      if (rest.starts_with("the ")) rest.remove_prefix(4);
      const world::Country* country = nullptr;
      for (const world::Country& row : world::countries()) {
        if (rest.starts_with(row.en) && (!country || row.en.size() > country->en.size())) country = &row;
      }
      ASSERT_NE(country, nullptr) << text;
      const std::string_view after = rest.substr(country->en.size());
      if (after.starts_with(" is ")) {
        ASSERT_TRUE(after.substr(4).starts_with(country->capital)) << text;
        ++seen;
      }
      const std::string_view before = std::string_view(text).substr(0, at);
      for (const std::string_view link : {" is ", ", "}) {
        if (!before.ends_with(link) || before.ends_with("What is ") || before.ends_with("and, ")) continue;
        const std::string_view name = before.substr(0, before.size() - link.size());
        if (link == ", " && name.ends_with(country->en)) continue;
        if (link == " is " && name.ends_with("What")) continue;
        if (link == ", ") {
          ASSERT_TRUE(name.ends_with(country->capital) || name.ends_with(" and")) << text;
        } else {
          ASSERT_TRUE(name.ends_with(country->capital)) << text;
        }
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 100U);
}

int64_t apply(int64_t a, const std::string& op, int64_t b) {
  return op == "+" ? a + b : op == "-" ? a - b : op == "÷" ? a / b : a * b;
}

bool is_number(const StoryWord& word) {
  return !word.form.empty() && word.form.find_first_not_of("0123456789") == std::string::npos;
}

TEST(WorldSums, ComeOutRight) {
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    for (const AnnotatedText* annotated : {&story.english, &story.chinese}) {
      for (const StorySentence& sentence : annotated->sentences) {
        const auto& words = sentence.words;
        for (size_t i = 0; i < words.size(); ++i) {
          if (words[i].form != "=" || !is_number(words[i + 1])) continue;
          // Backwards over a + b + c.
          size_t first = i - 1;
          while (first >= 2 && is_number(words[first - 2]) && words[first - 1].upos == "SYM") first -= 2;
          int64_t sum = std::stoll(words[first].form);
          for (size_t k = first + 1; k + 1 < i; k += 2) sum = apply(sum, words[k].form, std::stoll(words[k + 1].form));
          ASSERT_EQ(sum, std::stoll(words[i + 1].form)) << annotated->text;
          ++seen;
        }
      }
    }
  }
  EXPECT_GT(seen, some_stories().size() / 2);
}

// Written digits spell the result: of a column addition from right to left, of a long division from left to right.
TEST(WorldSums, StepsSpellTheResult) {
  size_t added = 0, divided = 0;
  for (const Story& story : some_stories()) {
    std::vector<std::string> written;
    for (const StorySentence& sentence : story.english.sentences) {
      const auto& words = sentence.words;
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i].form == "write") written.push_back(words[i + 1].form);
      }
      if (words[0].form != "So" || words.size() <= 5 || written.empty()) continue;
      const bool division = words[2].form == "÷";
      ASSERT_TRUE(division || words[2].form == "+") << story.english.text;
      if (!division) std::reverse(written.begin(), written.end());
      std::string result;
      for (const std::string& digit : written) result += digit;
      ASSERT_EQ(result, words[5].form) << story.english.text;
      ++(division ? divided : added);
      written.clear();
    }
  }
  EXPECT_GT(added, 50U);
  EXPECT_GT(divided, 20U);
}

// Both sides of a translation have the same digits in the same order, except small numbers written as words.
TEST(WorldPairs, ShareTheirNumbers) {
  for (const Story& story : some_stories()) {
    for (size_t s = 0; s < story.english.sentences.size(); ++s) {
      std::vector<std::string> english, chinese;
      for (const StoryWord& word : story.english.sentences[s].words) {
        if (is_number(word)) english.push_back(word.form);
      }
      for (const StoryWord& word : story.chinese.sentences[s].words) {
        if (is_number(word)) chinese.push_back(word.form);
      }
      ASSERT_EQ(english, chinese) << story.english.text << story.chinese.text;
    }
  }
}

// Measure words of unambiguous nouns, as listed in a grammar.
TEST(WorldChinese, CountsWithTheRightMeasureWord) {
  const std::map<std::string, std::string> kKnown{{"书", "本"},   {"猫", "只"},   {"狗", "只"},   {"茶", "杯"},
                                                  {"咖啡", "杯"}, {"信", "封"},   {"帽子", "顶"}, {"照片", "张"},
                                                  {"苹果", "个"}, {"雨伞", "把"}, {"围巾", "条"}, {"玫瑰", "朵"},
                                                  {"桥", "座"},   {"飞机", "架"}, {"钥匙", "把"}, {"词典", "本"}};
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    for (const StorySentence& sentence : story.chinese.sentences) {
      const auto& words = sentence.words;
      for (const StoryWord& word : words) {
        if (word.relation != "clf") continue;
        const StoryWord& number = words[static_cast<size_t>(word.head - 1)];
        if (number.head == 0) continue;
        const auto known = kKnown.find(words[static_cast<size_t>(number.head - 1)].form);
        if (known == kKnown.end()) continue;
        ASSERT_EQ(word.form, known->second) << story.chinese.text;
        ASSERT_NE(number.form, "二");
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 100U);
}

}  // namespace
}  // namespace qkv
