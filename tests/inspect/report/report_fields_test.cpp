// Numbers of reports where the usual models and texts would not show a mistake.
#include <gtest/gtest.h>

#include <array>

#include "inspect/look/token_numbers.h"
#include "inspect/report/estimate.h"
#include "inspect/report/token_report.h"
#include "inspect/watch/movie.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace report_fields_test {

// Statistics of as many texts, but not of the same: each is drawn from its own.
TEST(Estimates, OfOtherTextsAreDrawnFromThose) {
  constexpr size_t kTexts = 24;
  std::vector<TextSum> all(3 * kTexts);
  for (size_t s = 0; s < 3; ++s) {
    for (size_t t = 0; t < kTexts; ++t) {
      const bool counts = t % 3 != s;  // two in three, other ones each time
      all[s * kTexts + t] = {counts ? static_cast<double>((7 * t + s) % 11) : 0, counts ? 2 : 0};
    }
  }
  const std::vector<Estimate> made = estimates(all, kTexts, 5);
  for (size_t s = 0; s < 3; ++s) {
    const Estimate one = estimate(std::span(all).subspan(s * kTexts, kTexts), 5);
    EXPECT_EQ(made[s].texts, 16);
    EXPECT_EQ(made[s].mean, one.mean) << s;
    EXPECT_EQ(made[s].low, one.low) << s;
    EXPECT_EQ(made[s].high, one.high) << s;
  }
}

// Four snapshots of which no two neighbours rise enough, but two that are exactly a doubling of the step apart.
TEST(Phases, AJumpMayTakeExactlyADoublingOfTheStep) {
  const std::vector<int64_t> steps{0, 3, 5, 7, 30};  // 3 + 1 doubled is 7 + 1
  const std::vector<double> score{0.1, 0.1, 0.1 + 0.6 * kJump, 0.1 + 1.2 * kJump, 0.1 + 1.2 * kJump};
  const Phase phase = jump_phase(steps, score);
  EXPECT_EQ(phase.reason, "jump") << why_of(phase);
  EXPECT_EQ(phase.numbers.at("first_step"), 3);
  EXPECT_EQ(phase.numbers.at("last_step"), 7);
  const std::vector<int64_t> later{0, 3, 5, 8, 30};
  EXPECT_EQ(jump_phase(later, score).reason, "no_jump") << "more than a doubling";
}

// What enters layer 0 is the token's row and the position's; OPT's positions begin at row 2.
TEST(TokenReport, EmbeddingIsTheSumOfTheRowsItShows) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const char* name : {"gpt2", "opt"}) {
    const auto model = Checkpoint::open(test::golden(name)).model();
    const TokenNumbers numbers =
        token_numbers(*model, engine, {.ids = {5, 9, 4, 7, 2}}, 3, {model->spec().main(), 0, 1});
    const Json embedding = token_report(*model, engine, numbers).at("embedding");
    const Json &token = embedding.at("token"), &position = embedding.at("position"), &sum = embedding.at("values");
    ASSERT_EQ(token.size(), sum.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      EXPECT_NEAR(token[i].get<double>() + position[i].get<double>(), sum[i].get<double>(), 1e-5) << name << " " << i;
    }
  }
}

}  // namespace report_fields_test
}  // namespace qkv
