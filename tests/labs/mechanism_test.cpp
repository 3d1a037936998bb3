// Small forms of the labs' tasks: a model that has the mechanism learns them, one without it does not, and the lab's
// numbers tell the two apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "labs/attention/recall.h"
#include "labs/attention/two_places.h"
#include "labs/holds.h"
#include "labs/steps/cups.h"

namespace qkv {
namespace {

using test::holds;
using test::lab_context;

// Checked against the swaps carried out one by one on the cups themselves.
TEST(Cups, the_ball_is_where_the_swaps_leave_it) {
  const CupsTask task;
  for (const Telling telling : {Telling::at_once, Telling::steps, Telling::dots, Telling::shuffled}) {
    for (const CupsProblem& p : cups_problems(task, telling, 9, 3, 50)) {
      std::array<int32_t, 5> under{};  // under[cup]: 1 where the ball is
      under[static_cast<size_t>(p.question[16])] = 1;
      std::vector<int32_t> cups;
      for (size_t place = 0; place < 16; ++place) {
        const int32_t token = p.question[place];
        ASSERT_EQ(token == task.blank(), place < 7);
        if (place >= 7) {
          int32_t kind = task.cups;
          for (size_t a = 0; a < 5; ++a) {
            for (size_t b = a + 1; b < 5; ++b, ++kind) {
              if (kind == token) std::swap(under[a], under[b]);
            }
          }
        }
        cups.push_back(static_cast<int32_t>(std::find(under.begin(), under.end(), 1) - under.begin()));
      }
      EXPECT_EQ(p.answer.back(), cups.back());
      if (telling == Telling::steps) {
        EXPECT_EQ(p.answer, cups);
      }
      if (telling == Telling::shuffled) {
        EXPECT_TRUE(std::is_permutation(cups.begin(), cups.end(), p.answer.begin()));
      }
      EXPECT_EQ(p.question.size() + p.answer.size(), telling == Telling::at_once ? 18U : 33U);
    }
  }
}

// Planted: the steps in random order. The same task, model and tokens; the lab's rule no longer holds.
TEST(LabMechanisms, shuffled_steps_flip_thinking_aloud) {
  const CupsSchool school{
      .task = {.cups = 3, .swaps = 8}, .telling = Telling::steps, .steps = 200, .step_tokens = 512, .exam = 100};
  CupsSchool planted = school;
  planted.telling = Telling::shuffled;
  constexpr std::array<int32_t, 1> kSwaps{8};
  const double steps = cups_right(lab_context(), school, kSwaps, 1).front();
  const double shuffled = cups_right(lab_context(), planted, kSwaps, 1).front();
  EXPECT_TRUE(holds(labs::thinking_aloud(), "16 swaps: right with steps", steps)) << steps;
  EXPECT_FALSE(holds(labs::thinking_aloud(), "16 swaps: right with steps", shuffled)) << shuffled;
}

TEST(TwoPlacesTask, takes_each_half_from_its_place) {
  const TwoPlaces task;
  const TrainBatch batch = task.texts(1, 0, 3);
  for (size_t row = 0; row < batch.ids.size(); ++row) {
    if (row % 32 < 3) {
      EXPECT_EQ(batch.targets[row], TrainBatch::kIgnored);
      continue;
    }
    EXPECT_EQ(batch.targets[row] / 4, batch.ids[row - 1] / 4);
    EXPECT_EQ(batch.targets[row] % 4, batch.ids[row - 3] % 4);
  }
  EXPECT_EQ(batch.counted, 3 * 29);
}

// Planted: both heads in one. The model with two of them has the same number of weights.
TEST(LabMechanisms, heads_tied_together_flip_one_head) {
  constexpr int64_t kSteps = 250;
  const double two = two_places_right(lab_context(), {.model = {.heads = 2}, .steps = kSteps}, 1);
  const double one = two_places_right(lab_context(), {.model = {.heads = 1}, .steps = kSteps}, 1);
  EXPECT_TRUE(holds(labs::one_head(), "two places: right with 2 heads", two)) << two;
  EXPECT_FALSE(holds(labs::one_head(), "two places: right with 2 heads", one)) << one;
  EXPECT_TRUE(holds(labs::one_head(), "two places: right with 1 head", one)) << one;
}

// Planted: queries and keys by one matrix.
TEST(LabMechanisms, tied_queries_and_keys_flip_three_matrices) {
  using Tie = OneLayer::Tie;
  const auto right = [](Tie tie) {
    return two_places_right(lab_context(), {.model = {.tie = tie}, .first = 3, .second = 3, .steps = 250}, 1);
  };
  const double apart = right(Tie::none), tied = right(Tie::q_and_k);
  EXPECT_TRUE(holds(labs::three_matrices(), "3 back: right with three matrices", apart)) << apart;
  EXPECT_FALSE(holds(labs::three_matrices(), "3 back: right with three matrices", tied)) << tied;
}

// The rule on K = V can fail: with room for both, or with matrices of their own, nothing is lost.
TEST(LabMechanisms, room_for_keys_and_values_flips_three_matrices) {
  using Tie = OneLayer::Tie;
  const auto lost = [](int64_t width, Tie tie) {
    const auto right = [&](Tie with) { return recall_right(lab_context(), {.narrow = width, .tie = with}, 250, 1); };
    return right(Tie::none) - right(tie);
  };
  const char* number = "looked up, head of width 2: three matrices less K = V";
  EXPECT_TRUE(holds(labs::three_matrices(), number, lost(2, Tie::k_and_v)));
  EXPECT_FALSE(holds(labs::three_matrices(), number, lost(8, Tie::k_and_v)));
}

TEST(RecallTask, a_question_has_the_value_of_its_key) {
  const TrainBatch batch = Recall().texts(2, 5, 4);
  for (size_t row = 0; row < batch.ids.size(); ++row) {
    if (row % 32 < 24) continue;
    const int32_t key = batch.ids[row] - Recall::kQuestion;
    int facts = 0;
    for (size_t fact = row / 32 * 32; fact < row / 32 * 32 + 24; ++fact) {
      if (batch.ids[fact] / Recall::kValues != key) continue;
      EXPECT_EQ(batch.ids[fact] % Recall::kValues, batch.targets[row]);
      ++facts;
    }
    EXPECT_EQ(facts, Recall::kRounds);
  }
}

// Planted: queries and keys that do not depend on the token.
TEST(LabMechanisms, learnt_vectors_flip_fixed_qkv) {
  const double matrices = recall_right(lab_context(), {}, 250, 1);
  const double vectors = recall_right(lab_context(), {.fixed = OneLayer::Fixed::q_and_k}, 250, 1);
  EXPECT_TRUE(holds(labs::fixed_qkv(), "by content: right with matrices", matrices)) << matrices;
  EXPECT_FALSE(holds(labs::fixed_qkv(), "by content: right with matrices", vectors)) << vectors;
}

}  // namespace
}  // namespace qkv
