// Labels agree with the text: trees, spans, antecedents, bracket pairs, answers.
#include <algorithm>
#include <set>

#include "world/world_support.h"

namespace qkv {
namespace {

TEST(WorldConllu, IsATreeOverTheText) {
  const std::set<std::string> kUpos{"ADJ",  "ADP",  "ADV",   "AUX",   "CCONJ", "DET", "INTJ", "NOUN", "NUM",
                                    "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"};
  const std::set<std::string> kRelations{
      "acl",      "advcl",     "advmod", "amod",       "appos", "aux",      "case",      "cc",         "ccomp", "clf",
      "compound", "conj",      "cop",    "csubj",      "dep",   "det",      "discourse", "dislocated", "expl",  "fixed",
      "flat",     "goeswith",  "iobj",   "list",       "mark",  "nmod",     "nsubj",     "nummod",     "obj",   "obl",
      "orphan",   "parataxis", "punct",  "reparandum", "root",  "vocative", "xcomp"};
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      const AnnotatedText& annotated = story.in(language);
      const std::vector<ConlluSentence> sentences = read_conllu(to_conllu(annotated, "d"));
      ASSERT_EQ(sentences.size(), annotated.sentences.size());
      std::string whole;
      for (const ConlluSentence& sentence : sentences) {
        std::string joined;
        int roots = 0;
        const int n = static_cast<int>(sentence.words.size());
        for (int i = 0; i < n; ++i) {
          const ConlluWord& word = sentence.words[static_cast<size_t>(i)];
          joined += word.form;
          if (word.space_after && i + 1 < n) joined += ' ';
          ASSERT_TRUE(kUpos.contains(word.upos)) << word.upos << " of " << word.form << " in " << sentence.text;
          ASSERT_TRUE(kRelations.contains(word.relation.substr(0, word.relation.find(':')))) << word.relation;
          ASSERT_TRUE(word.head >= 0 && word.head <= n && word.head != i + 1) << sentence.text;
          roots += word.head == 0;
          ASSERT_EQ(word.head == 0, word.relation == "root") << sentence.text;
          int steps = 0;
          for (int at = i + 1; at != 0 && steps <= n; ++steps) at = sentence.words[static_cast<size_t>(at - 1)].head;
          ASSERT_LE(steps, n) << "a cycle in " << sentence.text;
        }
        ASSERT_EQ(roots, 1) << sentence.text;
        ASSERT_EQ(joined, sentence.text);
        if (!whole.empty() && language == Language::english) whole += ' ';
        whole += sentence.text;
      }
      ASSERT_EQ(whole, annotated.text);
    }
  }
}

TEST(WorldConllu, ANounWithAIsOne) {
  size_t seen = 0;
  for (const Story& story : some_stories()) {
    for (const StorySentence& sentence : story.english.sentences) {
      for (const StoryWord& article : sentence.words) {
        if (article.relation != "det" || article.lemma != "a") continue;
        const StoryWord& noun = sentence.words[static_cast<size_t>(article.head - 1)];
        if (noun.upos != "NOUN") continue;
        EXPECT_EQ(noun.feats, "Number=Sing") << noun.form << " in " << story.english.text;
        EXPECT_EQ(noun.lemma, noun.form) << story.english.text;
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 1000U);
}

// Projective: every word between a word and its head is a descendant of that head.
TEST(WorldConllu, HasNoCrossingArcs) {
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      for (const StorySentence& sentence : story.in(language).sentences) {
        const auto& words = sentence.words;
        for (size_t a = 0; a < words.size(); ++a) {
          const auto head = static_cast<size_t>(words[a].head);
          if (head == 0) continue;
          const size_t low = std::min(a, head - 1), high = std::max(a, head - 1);
          for (size_t b = low + 1; b < high; ++b) {
            const auto other = static_cast<size_t>(words[b].head);
            ASSERT_TRUE(other != 0 && other - 1 >= low && other - 1 <= high)
                << story.in(language).text.substr(sentence.begin, sentence.end - sentence.begin);
          }
        }
      }
    }
  }
}

TEST(WorldMentions, CoverWordsAndPointBack) {
  size_t pronouns = 0;
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      const AnnotatedText& annotated = story.in(language);
      for (size_t i = 0; i < annotated.mentions.size(); ++i) {
        const Mention& mention = annotated.mentions[i];
        const auto& words = annotated.sentences[mention.sentence].words;
        ASSERT_EQ(mention.begin, words[mention.first].begin);
        ASSERT_EQ(mention.end, words[mention.last].end);
        ASSERT_EQ(annotated.text.substr(words[mention.first].begin, words[mention.first].form.size()),
                  words[mention.first].form);
        const bool is_pronoun = std::any_of(words.begin() + static_cast<long>(mention.first),
                                            words.begin() + static_cast<long>(mention.last) + 1,
                                            [](const StoryWord& w) { return w.upos == "PRON"; });
        if (mention.kind == MentionKind::pronoun) {
          ++pronouns;
          ASSERT_TRUE(is_pronoun) << annotated.text;
          ASSERT_FALSE(mention.antecedents.empty()) << annotated.text.substr(mention.begin, mention.end - mention.begin)
                                                    << " means nobody in: " << annotated.text;
        }
        for (const size_t at : mention.antecedents) {
          ASSERT_LT(at, i);
          ASSERT_LE(annotated.mentions[at].begin, mention.begin);
          if (mention.kind == MentionKind::pronoun) {
            ASSERT_NE(annotated.mentions[at].kind, MentionKind::pronoun);
          }
        }
      }
    }
  }
  EXPECT_GT(pronouns, some_stories().size());
}

// Every pronoun is labelled, except those without a referent: expletive "it", "who", "nothing".
TEST(WorldMentions, MissNoPersonalPronoun) {
  const std::set<std::string> kPersonal{"he", "she", "him",  "his",  "her",     "they",    "I",   "my",
                                        "me", "you", "your", "we",   "himself", "herself", "他",  "她",
                                        "它", "我",  "你",   "他们", "她们",    "我们",    "自己"};
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      for (const StorySentence& sentence : story.in(language).sentences) {
        for (const StoryWord& word : sentence.words) {
          if (word.upos != "PRON" || !kPersonal.contains(word.lemma)) continue;
          ASSERT_GE(word.entity, 0) << word.form << " in " << story.in(language).text;
        }
      }
    }
  }
}

std::string gender_of(const std::string& lemma) {
  if (lemma == "he" || lemma == "his" || lemma == "他") return "male";
  if (lemma == "she" || lemma == "her" || lemma == "她") return "female";
  if (lemma == "it" || lemma == "its" || lemma == "它") return "none";
  return "";
}

TEST(WorldMentions, KeepTheirGenderAlsoAcrossLanguages) {
  const std::set<std::string> kMen{"Mr", "Uncle", "Grandpa"}, kWomen{"Mrs", "Ms", "Miss", "Aunt", "Grandma"};
  for (const Story& story : some_stories()) {
    std::map<int, std::set<std::string>> english, chinese;
    for (const Language language : kBoth) {
      auto& seen = language == Language::english ? english : chinese;
      for (const StorySentence& sentence : story.in(language).sentences) {
        for (const StoryWord& word : sentence.words) {
          if (word.entity < 0) continue;
          if (const std::string gender = gender_of(word.lemma); !gender.empty()) seen[word.entity].insert(gender);
          if (kMen.contains(word.form)) seen[word.entity].insert("male");
          if (kWomen.contains(word.form)) seen[word.entity].insert("female");
        }
      }
    }
    for (const auto& [entity, genders] : english) {
      ASSERT_EQ(genders.size(), 1U) << story.english.text;
      const auto there = chinese.find(entity);
      if (there == chinese.end()) continue;
      ASSERT_EQ(there->second.size(), 1U) << story.chinese.text;
      ASSERT_TRUE(*there->second.begin() == *genders.begin() || *there->second.begin() == "none") << story.chinese.text;
    }
  }
}

// Recomputed from the text alone: English quotes alternate, the others nest.
TEST(WorldPartners, MatchABracketCountOfTheText) {
  size_t found = 0;
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      const AnnotatedText& annotated = story.in(language);
      std::vector<std::pair<size_t, size_t>> expected;
      std::vector<size_t> open;
      bool inside = false;
      for (size_t at = 0; at < annotated.text.size(); ++at) {
        const std::string_view rest = std::string_view(annotated.text).substr(at);
        const bool quote = rest.starts_with('"');
        if (rest.starts_with('(') || rest.starts_with("“") || rest.starts_with("（") || (quote && !inside)) {
          open.push_back(at);
        } else if (rest.starts_with(')') || rest.starts_with("”") || rest.starts_with("）") || quote) {
          ASSERT_FALSE(open.empty()) << annotated.text;
          expected.emplace_back(open.back(), at);
          open.pop_back();
        }
        if (quote) inside = !inside;
      }
      ASSERT_TRUE(open.empty()) << annotated.text;
      std::vector<std::pair<size_t, size_t>> got;
      for (const BracketPair& pair : annotated.brackets) got.emplace_back(pair.open, pair.close);
      ASSERT_EQ(got, expected) << annotated.text;
      found += got.size();
    }
  }
  EXPECT_GT(found, some_stories().size());
}

TEST(WorldAnswers, StandInTheTextBeforeTheQuestion) {
  size_t asked = 0, aloud = 0;
  for (const Story& story : some_stories()) {
    ASSERT_EQ(story.english.answers.size(), story.chinese.answers.size());
    for (const Language language : kBoth) {
      const AnnotatedText& annotated = story.in(language);
      for (const Answer& answer : annotated.answers) {
        ASSERT_FALSE(answer.answer.empty());
        ASSERT_EQ(annotated.text.substr(answer.begin, answer.end - answer.begin), answer.answer);
        ASSERT_TRUE(answer.question.ends_with("?") || answer.question.ends_with("？")) << answer.question;
        ++asked;
        if (answer.asked_at == std::string::npos) continue;
        ASSERT_LE(answer.end, answer.asked_at) << annotated.text;
        ++aloud;
      }
    }
  }
  EXPECT_GT(asked, some_stories().size());
  EXPECT_GT(aloud, asked / 4);
}

// The text before context_bytes is the context of a question that the story asks: the question's sentence begins there.
TEST(WorldJson, TheContextOfAQuestionEndsWhereItIsAsked) {
  size_t aloud = 0;
  for (const Story& story : some_stories()) {
    for (const Language language : kBoth) {
      const AnnotatedText& annotated = story.in(language);
      const auto rows = answers_json(annotated);
      ASSERT_EQ(rows.size(), annotated.answers.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const Answer& answer = annotated.answers[i];
        ASSERT_EQ(rows[i].contains("context_bytes"), answer.asked_at != std::string::npos);
        if (!rows[i].contains("context_bytes")) continue;
        const auto bytes = rows[i]["context_bytes"].get<size_t>();
        ASSERT_EQ(bytes, answer.asked_at) << annotated.text;
        const auto asks = std::find_if(annotated.sentences.begin(), annotated.sentences.end(),
                                       [&](const StorySentence& sentence) { return sentence.begin == bytes; });
        ASSERT_NE(asks, annotated.sentences.end()) << "no sentence begins at " << bytes << " of " << annotated.text;
        const std::string sentence = annotated.text.substr(bytes, asks->end - bytes);
        EXPECT_TRUE(sentence.find('?') != std::string::npos || sentence.find("？") != std::string::npos) << sentence;
        ++aloud;
      }
    }
  }
  EXPECT_GT(aloud, 0U);
}

TEST(WorldJson, SpansAreTheSameInBytesAndCharacters) {
  size_t mentions = 0;
  for (const Story& story : std::span(some_stories()).first(20)) {
    for (const auto& row : mentions_json(story.chinese)) {
      const std::string text = row["text"];
      const size_t bytes = row["bytes"][1].get<size_t>() - row["bytes"][0].get<size_t>();
      const size_t characters = row["chars"][1].get<size_t>() - row["chars"][0].get<size_t>();
      const auto begins = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_EQ(text.size(), bytes);
      EXPECT_EQ(static_cast<size_t>(begins), characters) << text;
      ++mentions;
    }
  }
  EXPECT_GT(mentions, 20U);
}

}  // namespace
}  // namespace qkv
