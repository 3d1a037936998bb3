// The tasks of words and their vectors: what they ask is what they say, and a model without the mechanism fails.
#include <gtest/gtest.h>

#include <algorithm>

#include "labs/holds.h"
#include "labs/words/countries.h"
#include "labs/words/three_words.h"
#include "labs/words/two_things.h"

namespace qkv {
namespace {

using test::holds;
using test::lab_context;

TEST(LabVectors, what_labels_explain) {
  const Vectors apart{{0, 1}, {0, 1}, {4, 1}, {4, 1}}, noisy{{0, 0}, {0, 2}, {4, 0}, {4, 2}};
  const std::vector<int32_t> labels{0, 0, 1, 1}, crossed{0, 1, 0, 1};
  EXPECT_DOUBLE_EQ(share_explained(apart, labels), 1);
  EXPECT_DOUBLE_EQ(share_explained(noisy, labels), 0.8) << "4 of 5: the rest is within a label";
  EXPECT_DOUBLE_EQ(share_explained(apart, crossed), 0);
  EXPECT_DOUBLE_EQ(share_explained({{3, 3}, {3, 3}, {3, 3}, {3, 3}}, labels), 0) << "equal vectors tell nothing";
  EXPECT_DOUBLE_EQ(nearest_mean_right({noisy, labels}, {{{1, 1}, {3, 1}}, {0, 1}}), 1);
  EXPECT_DOUBLE_EQ(nearest_mean_right({noisy, labels}, {{{1, 1}, {1, 1}}, {0, 1}}), 0.5);
  EXPECT_DOUBLE_EQ(nearest_mean_right({{{1, 1}, {1, 1}}, {0, 1}}, {{{1, 1}}, {0}}), 0) << "a tie is no answer";
}

// Depth 0 is the row of the embedding, whatever stands before the token; the last depth depends on it.
TEST(LabVectors, are_those_of_the_asked_rows) {
  const auto model = fresh_model(lab_context(), config_of({.vocabulary = 8, .width = 16, .layers = 2, .init = 0.5}), 1);
  TrainBatch batch;
  add_text(batch, std::vector{1, 5, 0});
  add_text(batch, std::vector{2, 5, 0});
  const std::vector<size_t> rows{1, 3};
  const std::vector<Vectors> depths = stream_vectors(lab_context().engine, *model, batch, rows);
  ASSERT_EQ(depths.size(), 3U);
  EXPECT_EQ(depths[0][0], depths[0][1]);
  EXPECT_NE(depths[1][0], depths[1][1]);
  EXPECT_EQ(depths[0][0].size(), 16U);
}

TEST(ThreeWordsTask, knows_where_the_character_stands) {
  const ThreeWords task;
  world::Draw draw(1, 0, 0);
  std::array<int, ThreeWords::kWords> seen{};
  for (int i = 0; i < 50; ++i) {
    const ThreeWords::Text text = task.text(draw, 4);
    EXPECT_EQ(text.at.size(), 4U);
    for (size_t k = 0; k < text.at.size(); ++k) {
      EXPECT_EQ(text.ids[text.at[k]], task.character());
      ++seen[static_cast<size_t>(text.words[k])];
    }
    EXPECT_EQ(std::count(text.ids.begin(), text.ids.end(), task.character()), 4);
  }
  for (const int times : seen) EXPECT_GT(times, 40);
}

// Planted: attention that sees nothing but the token itself. Training goes on, the vector stays one.
TEST(LabMechanisms, no_context_flips_embedding_walk) {
  const ThreeWords task;
  const WordsExam exam = words_exam(task, 1, 10);
  const auto last = [&](bool alone) {
    return learn_words(lab_context(), task, exam, {.steps = 40, .alone = alone}, 1, {}).back();
  };
  const WordsRead sees = last(false), alone = last(true);
  const char* number = "last layer: share that the word explains";
  EXPECT_TRUE(holds(labs::embedding_walk(), number, sees.explained.back())) << sees.explained.back();
  EXPECT_FALSE(holds(labs::embedding_walk(), number, alone.explained.back())) << alone.explained.back();
  EXPECT_EQ(sees.explained.front(), 0);
}

TEST(TwoThingsTask, twins_differ_in_the_telling_word_alone) {
  for (const TwoThings::Told told : {TwoThings::Told::before, TwoThings::Told::after}) {
    const TwoThings task(told);
    const std::vector<TwoThings::Text> twins = task.twins();
    ASSERT_GT(twins.size(), 40U);
    for (size_t i = 0; i < twins.size(); i += 2) {
      const TwoThings::Text &a = twins[i], &b = twins[i + 1];
      ASSERT_EQ(a.ids.size(), b.ids.size());
      EXPECT_NE(a.meant, b.meant);
      size_t differs = 0, where = 0;
      for (size_t row = 0; row < a.ids.size(); ++row) {
        if (a.ids[row] == b.ids[row]) continue;
        ++differs;
        where = row;
      }
      EXPECT_EQ(differs, 1U);
      EXPECT_EQ(where < a.it, told == TwoThings::Told::before);
      for (const TwoThings::Text& text : {a, b}) {
        EXPECT_EQ(std::count(text.ids.begin(), text.ids.end(), text.meant), 1) << "the thing is on the table";
      }
    }
  }
}

TEST(TwoThingsTask, training_never_has_a_pair_of_the_exam) {
  const TwoThings task(TwoThings::Told::before);
  const TrainBatch batch = task.texts(3, 0, 400);
  for (const TwoThings::Text& text : task.twins()) {
    const auto first = text.ids.begin() + 7;  // thing, and, thing
    EXPECT_EQ(std::search(batch.ids.begin(), batch.ids.end(), first, first + 3), batch.ids.end());
  }
  EXPECT_EQ(batch.counted, 800);
}

// Planted: told too late. Whatever training does, a decoder has the same vector of 它 in both twins.
TEST(LabMechanisms, telling_after_flips_two_it) {
  const ItRead after = learn_it(lab_context(), TwoThings::Told::after, Sight::back, 40, 1);
  EXPECT_FALSE(holds(labs::two_it(), "told before: decoder, right at 它", after.at_it));
  EXPECT_FALSE(holds(labs::two_it(), "told before: likeness of the two 它, last layer", after.alike.back()));
  EXPECT_NEAR(after.alike.back(), 1, 1e-9);
  const ItRead before = learn_it(lab_context(), TwoThings::Told::before, Sight::back, 40, 1);
  EXPECT_TRUE(holds(labs::two_it(), "told before: likeness of the two 它, last layer", before.alike.back()))
      << before.alike.back();
}

TEST(CountriesTask, pairs_share_their_things_and_never_meet) {
  for (const bool shared : {true, false}) {
    const TrainBatch batch = Countries{.shared = shared}.texts(1, 0, 200);
    for (size_t at = 0; at + 3 < batch.ids.size(); ++at) {
      if (batch.ids[at] != Countries::kStop || batch.ids[at + 1] == Countries::kStop) continue;
      int32_t place = batch.ids[at + 1], thing = batch.ids[at + 3];
      if (place >= Countries::kFirstThing) std::swap(place, thing);
      ASSERT_LT(place, Countries::kFirstThing);
      ASSERT_GE(thing, Countries::kFirstThing);
      ASSERT_LT(thing, Countries::kFirstVerb);
      const bool own = (thing - Countries::kFirstThing) / Countries::kThings == place % Countries::kPairs;
      EXPECT_EQ(own, shared || place < Countries::kPairs);
    }
  }
}

// The lab's measure can say yes and can tell a neighbour from arithmetic: vectors made by hand.
TEST(Analogies, are_right_for_a_parallelogram_and_see_through_neighbours) {
  const auto vectors = [](float kind) {  // of a pair: a direction of its own; of a kind: `kind` along one more
    Vectors words(static_cast<size_t>(Countries::vocabulary()), std::vector<float>(Countries::kPairs + 2));
    for (size_t w = 0; w < words.size(); ++w) words[w].back() = 1;
    for (int32_t pair = 0; pair < Countries::kPairs; ++pair) {
      for (const int32_t word : {Countries::country(pair), Countries::capital(pair)}) {
        words[static_cast<size_t>(word)][static_cast<size_t>(pair)] = 2;
        words[static_cast<size_t>(word)][Countries::kPairs] = word < Countries::kPairs ? -kind : kind;
      }
    }
    return words;
  };
  const AnalogyScore made = analogies(vectors(3));
  EXPECT_EQ(made.open, 1);
  EXPECT_EQ(made.neighbour, 0);
  const AnalogyScore leak = analogies(vectors(0.01F));
  EXPECT_EQ(leak.neighbour, 1) << "capital and country nearly the same vector";
}

// Planted: capitals that share nothing with their countries.
TEST(LabMechanisms, unrelated_capitals_flip_analogy) {
  const AnalogyScore own = learnt_analogies(lab_context(), {}, 200, 1),
                     other = learnt_analogies(lab_context(), {.shared = false}, 200, 1);
  EXPECT_TRUE(holds(labs::analogy(), "right, nothing left out", own.open)) << own.open;
  EXPECT_FALSE(holds(labs::analogy(), "right, nothing left out", other.open)) << other.open;
}

}  // namespace
}  // namespace qkv
