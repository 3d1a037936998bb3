// The small language is what it says it is, distances are what they say, and without order there are no phases.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "labs/holds.h"
#include "labs/learning/phase_exam.h"

namespace qkv {
namespace {

using test::holds;
using test::lab_context;

TEST(SmallLanguageTask, grammar_gives_every_next_word_its_true_probability) {
  world::Draw draw(2, 0, 0);
  double surprise = 0, expected = 0, rows = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<int32_t> text = SmallLanguage::text(draw, 65);
    const std::vector<std::vector<float>> grammar = SmallLanguage::by_grammar(text);
    for (size_t row = 0; row + 1 < text.size(); ++row) {
      double sum = 0;
      for (const float p : grammar[row]) sum += static_cast<double>(p);
      ASSERT_NEAR(sum, 1, 1e-5);
      const auto p = static_cast<double>(grammar[row][static_cast<size_t>(text[row + 1])]);
      ASSERT_GT(p, 0) << "word " << row << ": the grammar forbids what the text says";
      surprise -= std::log(p);
      for (const float q : grammar[row]) {
        if (q > 0) expected -= static_cast<double>(q) * std::log(static_cast<double>(q));
      }
      ++rows;
    }
  }
  EXPECT_NEAR(surprise / rows, expected / rows, 0.03) << "probabilities as large as the texts show";
}

TEST(SmallLanguageTask, a_noun_keeps_its_name_within_a_text) {
  world::Draw draw(3, 0, 0);
  int known = 0, changed = 0;
  std::map<int32_t, int32_t> before;
  for (int i = 0; i < 50; ++i) {
    const std::vector<int32_t> text = SmallLanguage::text(draw, 100);
    const std::vector<bool> asked = SmallLanguage::before_known_name(text);
    std::map<int32_t, int32_t> names;
    for (size_t row = 0; row + 1 < text.size(); ++row) {
      const int32_t noun = text[row], name = text[row + 1];
      if (noun < SmallLanguage::kNoun || noun >= SmallLanguage::kName) {
        EXPECT_FALSE(asked[row]) << "no name is next";
        continue;
      }
      EXPECT_EQ(asked[row], names.contains(noun));
      if (names.contains(noun)) {
        EXPECT_EQ(names[noun], name);
        ++known;
      }
      names[noun] = name;
    }
    for (const auto& [noun, name] : names) changed += before.contains(noun) && before[noun] != name ? 1 : 0;
    before = names;
  }
  EXPECT_GT(known, 100);
  EXPECT_GT(changed, 100) << "names are drawn anew for every text";
}

// Distances of guesses that are known: those of nobody, and the path from there.
TEST(PhaseExams, measure_how_far_guesses_are) {
  const PhaseExam exam(2, 6);
  const auto model = fresh_model(
      lab_context(), config_of({.vocabulary = SmallLanguage::kVocabulary, .width = 16, .layers = 1, .init = 1e-6}), 1);
  const std::vector<float> logits = exam.logits(lab_context().engine, *model);
  const PhaseDistance nobody = exam.distance(logits);
  EXPECT_NEAR(nobody.loss, std::log(static_cast<double>(SmallLanguage::kVocabulary)), 0.01);
  EXPECT_NEAR(nobody.known_names, nobody.loss, 0.01);
  EXPECT_LT(nobody.unigram, nobody.bigram);
  EXPECT_LT(nobody.bigram, nobody.grammar);
  PhaseRun end;
  end.last = logits;
  const PhaseRun path = even_path(exam, end);
  EXPECT_DOUBLE_EQ(path.points.back().at.loss, nobody.loss);
  EXPECT_NEAR(path.points.front().at.loss, std::log(static_cast<double>(SmallLanguage::kVocabulary)), 1e-6);
}

// Planted: words in random order. Grammar comes within 120 steps if there is one, and the lab's control says so.
TEST(LabMechanisms, shuffled_words_have_no_grammar) {
  const auto nearest = [](bool shuffled) {
    const PhaseRun run =
        run_phases(lab_context(), PhaseExam(1, 4), {.layers = 1, .steps = 120, .shuffled = shuffled}, 1);
    double least = run.points.front().at.grammar;
    for (const PhasePoint& point : run.points) least = std::min(least, point.at.grammar);
    return least;
  };
  const char* number = "control: shuffled words: nearest to the grammar, nats";
  const double in_order = nearest(false), shuffled = nearest(true);
  EXPECT_FALSE(holds(labs::phases(), number, in_order)) << in_order;
  EXPECT_TRUE(holds(labs::phases(), number, shuffled)) << shuffled;
}

}  // namespace
}  // namespace qkv
