// Verdicts follow the rules, and every lab runs, gives finite numbers and can fail.
#include "labs/labs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/expect_error.h"
#include "kernels/tables.h"
#include "labs/heads/world_texts.h"
#include "labs/repeated_tokens.h"
#include "labs/small_model.h"
#include "support/guarded_device.h"

namespace qkv {
namespace {

using Side = LabRule::Side;

const Engine& engine() {
  static const Engine one(kernels::best_table(), {.threads = 1});
  return one;
}

// Student's t from tables printed in any textbook: 95 %, three and six values.
TEST(LabFrame, intervals_are_students_t) {
  const LabRow three = over_seeds("x", {1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.high - three.mean, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(three.mean - three.low, 4.303 / std::sqrt(3.0), 1e-9);
  const LabRow six = over_seeds("x", {0, 0, 0, 6, 6, 6});
  EXPECT_NEAR(six.high - six.mean, 2.571 * std::sqrt(6 * 9 / 5.0 / 6), 1e-9);
  EXPECT_DOUBLE_EQ(over_seeds("x", {5, 5, 5}).low, 5);
  EXPECT_TRUE(std::isinf(over_seeds("x", {5}).high)) << "one seed says nothing about others";
}

TEST(LabFrame, the_whole_interval_has_to_lie_on_the_rules_side) {
  const std::vector<LabRow> rows{over_seeds("far", {10, 10.1, 9.9}), over_seeds("near", {1, 2, 3})};
  const auto held = [&](const char* name, Side side, double bound) {
    const LabRule rule{name, side, bound, ""};
    return judge(rows, {&rule, 1}).front().held;
  };
  EXPECT_TRUE(held("far", Side::above, 9));
  EXPECT_FALSE(held("far", Side::above, 9.9));
  EXPECT_FALSE(held("far", Side::below, 10));
  EXPECT_TRUE(held("far", Side::below, 11));
  EXPECT_FALSE(held("near", Side::above, 0)) << "the mean is above, the interval is not";
  EXPECT_FALSE(held("near", Side::below, 4));
  EXPECT_TRUE(held("near", Side::below, 5));
}

TEST(LabFrame, verdicts) {
  const auto verdict = [](std::vector<bool> held, int64_t seeds) {
    std::vector<Judged> judged;
    for (const bool h : held) judged.push_back({{}, h});
    return verdict_of(judged, seeds);
  };
  EXPECT_EQ(verdict({true, true}, 3), Verdict::seen);
  EXPECT_EQ(verdict({true, false}, 3), Verdict::mixed);
  EXPECT_EQ(verdict({false, false}, 3), Verdict::not_seen);
  EXPECT_EQ(verdict({true, true}, 2), Verdict::none);
}

TEST(LabFrame, skipped_rules_do_not_count) {
  const auto verdict = [](std::vector<Judged> judged) { return verdict_of(judged, 3); };
  EXPECT_EQ(verdict({{{}, true}, {{}, false, true}}), Verdict::seen);
  EXPECT_EQ(verdict({{{}, false}, {{}, false, true}}), Verdict::not_seen);
  EXPECT_EQ(verdict({{{}, true}, {{}, false}, {{}, false, true}}), Verdict::mixed);
  EXPECT_EQ(verdict({{{}, false, true}}), Verdict::none) << "nothing was judged";
}

Lab made_up(SeedNumbers (*measure)(const LabContext&, uint64_t)) {
  return {.name = "made up",
          .claim = "",
          .claim_zh = "",
          .how = "",
          .seeds = 3,
          .rules = {{"x", Side::above, 0.5, ""}},
          .found = {.seen = {"x is {x}", "x 是 {x}"}, .mixed = {}, .not_seen = {}},
          .measure = measure};
}

TEST(LabFrame, runs_seed_after_seed_and_stops_when_asked) {
  const Lab lab = made_up([](const LabContext& context, uint64_t seed) {
    context.check("working");
    SeedNumbers out;
    out.add("x", static_cast<double>(seed));
    out.curves.push_back({"x", "y", "", {{0, static_cast<double>(seed)}}});
    return out;
  });
  const LabResult whole = run_lab(lab, {.engine = engine()}, 4);
  EXPECT_EQ(whole.seeds, (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(whole.rows.front().mean, 2.5);
  EXPECT_DOUBLE_EQ(whole.curves.front().points.front().y, 2.5);
  EXPECT_EQ(run_lab(lab, {.engine = engine(), .first_seed = 7}, 3).seeds, (std::vector<uint64_t>{7, 8, 9}));
  int asked = 0;
  const LabResult part = run_lab(lab, {.engine = engine(), .stop = [&] { return ++asked == 3; }}, 4);
  EXPECT_TRUE(part.stopped);
  EXPECT_EQ(part.seeds.size(), 2U);
  EXPECT_EQ(part.verdict, Verdict::none);
  expect_error([&] { run_lab(lab, {.engine = engine()}, 2); }, {"3 seeds", "2"});
  try {
    lab_named("inducton");
    ADD_FAILURE() << "there is no such lab";
  } catch (const Error& e) {
    for (const char* named : {"did you mean induction", "one-head", "thinking-aloud"}) {
      EXPECT_NE(e.hint().find(named), std::string::npos) << e.hint();
    }
  }
}

TEST(LabFrame, parts_have_verdicts_of_their_own_and_may_be_skipped) {
  Lab lab = made_up([](const LabContext&, uint64_t seed) {
    SeedNumbers out;
    out.add("x", 1 + 0.01 * static_cast<double>(seed));
    out.add("y", 0);
    out.skipped.push_back({"nobody", {"there is no model nobody; make it", "没有 nobody"}});
    return out;
  });
  lab.parts = {{"first", "一", {"a", "甲"}, {"x is {x}.", "x 是 {x}。"}},
               {"second", "二", {"b", "乙"}, {"y is {y}.", "y 是 {y}。"}},
               {"third", "三", {"c", "丙"}, {"z is {z}.", "z 是 {z}。"}, "nobody"}};
  lab.rules = {{"x", Side::above, 0.5, "", 0}, {"y", Side::above, 0.5, "", 1}, {"z", Side::above, 0.5, "", 2}};
  const LabResult result = run_lab(lab, {.engine = engine()}, 3);
  EXPECT_EQ(result.verdict, Verdict::mixed);
  EXPECT_EQ(result.parts, (std::vector<Verdict>{Verdict::seen, Verdict::not_seen, Verdict::none}));
  EXPECT_EQ(part_conclusion(lab, result, 0).english, "x is 1.02.");
  EXPECT_EQ(part_conclusion(lab, result, 1).chinese, "y 是 0。");
  EXPECT_NE(part_conclusion(lab, result, 2).english.find("make it"), std::string::npos);
  EXPECT_TRUE(result.judged[2].skipped);
}

TEST(LabTasks, repeated_tokens_repeat) {
  const RepeatedTokens task;
  const TrainBatch batch = task.texts(3, 7, 20);
  ASSERT_EQ(std::ssize(batch.ids), 20 * task.length);
  std::set<int> blocks;
  int64_t counted = 0;
  for (size_t text = 0; text < 20; ++text) {
    const int32_t *ids = &batch.ids[text * 64], *targets = &batch.targets[text * 64];
    int block = 0;
    while (targets[block] == TrainBatch::kIgnored) ++block;
    blocks.insert(block);
    for (int row = block; row < 64; ++row, ++counted) {
      EXPECT_EQ(ids[row], ids[row - block]);
      EXPECT_EQ(targets[row], ids[row - block + 1]);
    }
  }
  EXPECT_EQ(counted, batch.counted);
  EXPECT_GT(blocks.size(), 5U) << "a fixed distance would be enough";
  EXPECT_EQ(batch.ids, task.texts(3, 7, 20).ids);
  EXPECT_NE(batch.ids, task.texts(3, 8, 20).ids);
}

TEST(LabTasks, held_out_stories_are_not_taught) {
  const WorldTexts world(60);
  const std::vector<TokenText> held = world.held_out(5, 48);
  ASSERT_EQ(held.size(), 5U);
  const TrainBatch batch = world.batch(1, 0, 200, 48);
  for (const TokenText& text : held) {
    EXPECT_EQ(text.ids.size(), 49U);
    EXPECT_EQ(std::search(batch.ids.begin(), batch.ids.end(), text.ids.begin(), text.ids.end()), batch.ids.end());
  }
  const auto [low, high] = std::minmax_element(batch.ids.begin(), batch.ids.end());
  EXPECT_GE(*low, 0);
  EXPECT_LT(*high, world.vocabulary());
}

// A model drawn, trained and read where the host cannot touch its memory.
TEST(Labs, run_on_a_device) {
  const RepeatedTokens task;
  const auto [device, host] = test::on_both([&](const Engine& on) {
    const LabContext lab{.engine = on};
    const auto model = fresh_model(lab, config_of({.vocabulary = task.vocabulary, .width = 16, .layers = 1}), 3);
    train_model(lab, *model, {.label = "a device", .steps = 2, .lr = 1e-2, .batch = [&](int64_t step) {
                                return task.texts(1, step, 2);
                              }});
    return row_losses(on, *model, task.texts(1, -1, 2));
  });
  EXPECT_EQ(device, host);
  EXPECT_FALSE(device.empty());
}

TEST(Labs, causality_is_seen) {
  const LabResult result = run_lab(labs::causality(), {.engine = engine(), .size = 0.1}, 3);
  EXPECT_EQ(result.verdict, Verdict::seen);
  for (const Judged& j : result.judged) EXPECT_TRUE(j.held) << j.rule.number;
}

std::string underscored(const testing::TestParamInfo<const char*>& lab) {
  std::string name = lab.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// After a few steps nothing is learnt, so no claim about learning may hold.
class LabsInShort : public testing::TestWithParam<const char*> {};

TEST_P(LabsInShort, runs_and_can_say_no) {
  const Lab& lab = lab_named(GetParam());
  const LabResult result = run_lab(lab, {.engine = engine(), .size = 0.003}, 3);
  ASSERT_EQ(result.each.size(), 3U);
  for (const LabRow& row : result.rows) {
    for (const double v : row.values) EXPECT_TRUE(std::isfinite(v)) << row.name;
    EXPECT_LE(row.low, row.high);
  }
  for (const SeedNumbers::Curve& curve : result.curves) {
    for (const LabPoint& p : curve.points) EXPECT_TRUE(std::isfinite(p.x) && std::isfinite(p.y)) << curve.y;
  }
  if (std::string(lab.name) != "reading-writing") {
    EXPECT_NE(result.verdict, Verdict::seen);
  }
  for (const Verdict verdict : {Verdict::seen, Verdict::mixed, Verdict::not_seen}) {
    LabResult as = result;
    as.verdict = verdict;
    const LabSentence says = conclusion(lab, as);  // asserts that every number it names was measured
    EXPECT_TRUE(says.english.ends_with('.')) << says.english;
    EXPECT_TRUE(says.chinese.ends_with("。")) << says.chinese;
  }
}
INSTANTIATE_TEST_SUITE_P(All, LabsInShort,
                         testing::Values("induction", "sixteen-heads", "seats", "thinking-aloud", "reading-writing",
                                         "scale", "one-head", "three-matrices", "fixed-qkv", "question-first", "phases",
                                         "experts", "embedding-walk", "two-it", "analogy", "facts"),
                         underscored);

TEST(Labs, cached_equals_uncached_even_in_a_small_model) {
  const LabResult result = run_lab(labs::reading_writing(), {.engine = engine(), .size = 0.05}, 3);
  for (const Judged& j : result.judged) {
    if (!j.rule.number.starts_with("cached differs")) continue;
    EXPECT_TRUE(j.held) << j.rule.number;
  }
}

// Full size, as a user runs them: any verdict, but within the time limit.
class LabsLong : public testing::TestWithParam<const char*> {};

TEST_P(LabsLong, ends_within_five_minutes) {
  const Lab& lab = lab_named(GetParam());
  const LabResult result = run_lab(lab, {.engine = engine()}, lab.seeds);
  EXPECT_NE(result.verdict, Verdict::none);
  EXPECT_LT(result.seconds, 300);
}
INSTANTIATE_TEST_SUITE_P(All, LabsLong,
                         testing::Values("induction", "sixteen-heads", "seats", "thinking-aloud", "reading-writing",
                                         "causality", "scale", "one-head", "three-matrices", "fixed-qkv",
                                         "question-first", "phases", "experts", "embedding-walk", "two-it", "analogy",
                                         "facts"),
                         underscored);

}  // namespace
}  // namespace qkv
