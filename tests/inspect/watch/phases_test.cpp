// What a movie is told by, on constructed numbers: steps of snapshots, phases, roles, planes, frequencies.
#include <gtest/gtest.h>

#include <cmath>

#include "inspect/watch/movie.h"
#include "inspect/watch/pca.h"
#include "inspect/watch/watched_roles.h"
#include "inspect/watch/watcher.h"
#include "support/pass.h"

namespace qkv {
namespace {

// --- steps of snapshots ----------------------------------------------------------------------------------------------

TEST(SnapshotSteps, are_dense_early_and_few) {
  for (const int64_t total : {1, 2, 12, 100, 350, 2000, 20000, 1'000'000}) {
    for (const int64_t most : {6, 20, 60}) {
      const std::vector<int64_t> steps = snapshot_steps(total, most);
      EXPECT_EQ(steps.front(), 0);
      EXPECT_EQ(steps.back(), total);
      EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), std::less_equal<>())) << total;  // none twice
      EXPECT_LE(std::ssize(steps), most) << total;
      for (size_t i = 1; i < steps.size() && most == 60 && total <= 20000; ++i) {
        EXPECT_LE(static_cast<double>(steps[i]), 1.2 * static_cast<double>(steps[i - 1]) + 1.5) << total;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(snapshot_steps(350, 60).size()), 56, 4);  // it uses nearly all it may
}

// --- phases on constructed curves ------------------------------------------------------------------------------------

std::vector<int64_t> some_steps() {
  return snapshot_steps(4000, 60);
}
std::vector<double> over(const std::vector<int64_t>& steps, const std::function<double(double octaves)>& f) {
  std::vector<double> values;
  for (const int64_t step : steps) values.push_back(f(std::log2(static_cast<double>(step) + 1)));
  return values;
}

// The rule of qkv heads: a mean above the threshold is not enough.
TEST(WatchedRoles, need_the_whole_interval) {
  const Estimate near{.mean = 0.42, .low = 0.397, .high = 0.45, .n = 400, .texts = 20},
      enough{.mean = 0.42, .low = 0.4, .high = 0.45, .n = 400, .texts = 20},
      few{.mean = 0.6, .low = 0.5, .high = 0.7, .n = 400, .texts = 19};
  EXPECT_FALSE(has_role(WatchedRole::previous, near));
  EXPECT_TRUE(has_role(WatchedRole::previous, enough));
  EXPECT_TRUE(has_role(WatchedRole::first, near));  // from 0.3 on
  EXPECT_FALSE(has_role(WatchedRole::previous, few));
  EXPECT_FALSE(has_role(WatchedRole::entropy, enough));
}

TEST(Phases, are_dated_where_the_curve_turns) {
  const std::vector<int64_t> steps = some_steps();
  // Nearest to the frequencies after 6 octaves: step 63.
  const Phase turned = nearest_phase("unigram", steps, over(steps, [](double o) { return 1 + std::abs(o - 6); }));
  ASSERT_TRUE(turned.step.has_value());
  EXPECT_NEAR(static_cast<double>(*turned.step), 63, 6);
  EXPECT_FALSE(nearest_phase("bigram", steps, over(steps, [](double o) { return 9 - o / 2; })).step);  // keeps falling
  EXPECT_FALSE(nearest_phase("bigram", steps, over(steps, [](double o) { return o; })).step);          // a start
  EXPECT_FALSE(nearest_phase("bigram", std::vector<int64_t>{0, 5}, std::vector<double>{2, 1}).step);

  const auto logistic = [](double middle, double sharpness, double height) {
    return [=](double o) { return 0.02 + height / (1 + std::exp(-sharpness * (o - middle))); };
  };
  const Phase jumped = jump_phase(steps, over(steps, logistic(8, 6, 0.7)));
  ASSERT_TRUE(jumped.step.has_value());
  EXPECT_NEAR(std::log2(static_cast<double>(*jumped.step)), 8, 0.4);
  EXPECT_FALSE(jump_phase(steps, over(steps, logistic(8, 6, 0.1))).step);                      // low
  EXPECT_FALSE(jump_phase(steps, over(steps, [](double o) { return 0.08 * o; })).step);        // high, but no jump
  EXPECT_FALSE(jump_phase(steps, over(steps, [](double o) { return 0.9 - 0.07 * o; })).step);  // falls

  const double per_octave = std::log(2.0);
  const Phase flat = plateau_phase(
      steps, over(steps, [&](double o) { return o < 9 ? 8 - 0.6 * o : 8 - 0.6 * 9 - 0.05 * per_octave * (o - 9); }));
  ASSERT_TRUE(flat.step.has_value());
  EXPECT_NEAR(std::log2(static_cast<double>(*flat.step)), 9, 0.4);
  EXPECT_FALSE(plateau_phase(steps, over(steps, [](double o) { return 8 - 0.5 * o; })).step);
  // Flat for a while, then falling again: not a plateau.
  EXPECT_FALSE(plateau_phase(steps, over(steps, [](double o) { return 5 - (o < 10 ? 0 : o - 10); })).step);
}

TEST(Phases, say_why_with_their_numbers) {
  const std::vector<int64_t> steps{0, 1, 3, 7, 15};
  const Phase turned = nearest_phase("unigram", steps, std::vector<double>{4, 2, 1, 2, 3});
  EXPECT_EQ(why_of(turned), "KL(model || unigram) 4.000 at step 0, lowest here with 1.000, 3.000 at the end");
  EXPECT_EQ(why_of(nearest_phase("bigram", steps, std::vector<double>{4, 3, 2, 1, 0.5})),
            "KL(model || bigram) 4.000 at step 0, still falling at the end with 0.500");
  EXPECT_EQ(why_of(nearest_phase("bigram", steps, std::vector<double>{1, 2, 3, 4, 5})),
            "KL(model || bigram) 1.000 at step 0, never lower");
  EXPECT_EQ(why_of(jump_phase(steps, std::vector<double>{0, 0, 0.1, 0.8, 0.9})),
            "the best head's induction score goes from 0.000 to 0.900; it rises by 0.700 from step 3 to 7");
  EXPECT_EQ(why_of(jump_phase(steps, std::vector<double>{0, 0, 0.05, 0.1, 0.1})),
            "the best head's induction score goes from 0.000 to 0.100; it rises by 0.050 at most while the step "
            "doubles, a jump is 0.15");
  EXPECT_EQ(why_of(jump_phase(std::vector<int64_t>{0, 1}, std::vector<double>{0, 1})), "2 snapshots are too few");
  const double octave = std::log(2.0);
  EXPECT_EQ(
      why_of(plateau_phase(steps, std::vector<double>{9, 9 - octave, 9 - 2 * octave, 9 - 3 * octave, 9 - 4 * octave})),
      "the loss is still falling at the end: -1.000 nats per e-fold of steps, flat is under 0.1");
  EXPECT_EQ(why_of(plateau_phase(steps, std::vector<double>{3, 3, 3, 3, 3})),
            "from here on the loss changes by less than 0.1 nats per e-fold of steps");
  EXPECT_EQ(plateau_phase(steps, std::vector<double>{1, 2, 3, 4, 5}).reason, "still_rising");
}

// --- PCA -------------------------------------------------------------------------------------------------------------

TEST(Pca, finds_eigenvalues_known_by_hand) {
  const Eigen eigen = symmetric_eigen({2, -1, 0, -1, 2, -1, 0, -1, 2}, 3);
  const double root = std::sqrt(2.0);
  EXPECT_NEAR(eigen.values[0], 2 + root, 1e-12);
  EXPECT_NEAR(eigen.values[1], 2, 1e-12);
  EXPECT_NEAR(eigen.values[2], 2 - root, 1e-12);
  EXPECT_NEAR(std::abs(eigen.vectors[1]), root / 2, 1e-12);  // (1, -sqrt 2, 1) / 2
}

TEST(Pca, finds_the_axes_points_were_made_along) {
  // Points along (3, 4, 0, ...) / 5 with deviation 5 and (4, -3, 0, ...) / 5 with deviation 2, for both code paths.
  for (const auto& [count, width] : {std::pair<size_t, size_t>{8, 30}, {40, 6}}) {
    std::vector<float> points(count * width, 7.0F);  // far from the origin
    for (size_t i = 0; i < count; ++i) {
      const double a = i % 2 == 0 ? 5 : -5, b = i % 4 < 2 ? 2 : -2;
      points[i * width] += static_cast<float>((3 * a + 4 * b) / 5);
      points[i * width + 1] += static_cast<float>((4 * a - 3 * b) / 5);
    }
    const Plane plane = fit_plane(points, width);
    EXPECT_NEAR(plane.share[0], 25.0 / 29, 1e-6);
    EXPECT_NEAR(plane.share[1], 4.0 / 29, 1e-6);
    EXPECT_NEAR(plane.axes[0][0], 0.6, 1e-6);
    EXPECT_NEAR(plane.axes[0][1], 0.8, 1e-6);
    EXPECT_NEAR(plane.axes[1][0], 0.8, 1e-6);
    EXPECT_NEAR(plane.axes[1][1], -0.6, 1e-6);
    const auto [x, y] = plane.project(std::span(points).first(width));
    EXPECT_NEAR(x, 5, 1e-5);
    EXPECT_NEAR(y, 2, 1e-5);
  }
  EXPECT_EQ(fit_plane(std::vector<float>(12, 1.0F), 3).share[0], 0);  // all points equal
}

// --- frequencies -----------------------------------------------------------------------------------------------------

TEST(TokenCounts, give_the_divergences_of_their_definition) {
  constexpr int32_t kVocabulary = 7;
  TokenCounts counts(kVocabulary, std::vector<int32_t>{2, 3});
  const std::vector<int32_t> text{0, 2, 1, 2, 1, 2, 5, 3, 0, 2, 1, 4, 4};
  counts.add(std::span(text).first(12), std::span(text).subspan(1));
  counts.finish();
  EXPECT_EQ(counts.counted(), 12);
  EXPECT_EQ(counts.most_frequent(3), (std::vector<int32_t>{2, 1, 4}));
  EXPECT_DOUBLE_EQ(counts.unigram(6), 0.5 / 15.5);  // never seen
  EXPECT_DOUBLE_EQ(counts.bigram(2, 1), (3 + 10 * counts.unigram(1)) / (4 + 10));
  EXPECT_DOUBLE_EQ(counts.bigram(4, 1), counts.unigram(1));  // no pair begins with 4
  const std::vector<float> logits{0.3F, -1.5F, 2.0F, 0.0F, 40.0F, 39.0F, -60.0F};
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  for (const int32_t before : {2, 3, 4}) {
    double unigram = 0, bigram = 0, mass = 0;
    for (int32_t v = 0; v < kVocabulary; ++v) {
      const double p = std::exp(static_cast<double>(logits[static_cast<size_t>(v)])) / sum;
      unigram += p * std::log(p / counts.unigram(v));
      bigram += p * std::log(p / counts.bigram(before, v));
      mass += counts.bigram(before, v);
    }
    EXPECT_NEAR(mass, 1, 1e-12);
    const TokenCounts::Distance found = counts.distance(logits, before, 5);
    EXPECT_NEAR(found.loss, std::log(sum) - 39, 1e-6);
    EXPECT_NEAR(found.unigram, unigram, 1e-6);
    EXPECT_NEAR(found.bigram, bigram, 1e-6);
  }
}

}  // namespace
}  // namespace qkv
