// Intervals stay within what is possible, every verdict has its sentence, and records and table are not stale.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/file.h"
#include "labs/heads/jump.h"
#include "labs/labs.h"
#include "labs/recorded.h"
#include "support/pass.h"

namespace qkv {
namespace {

TEST(LabIntervals, never_leave_what_is_possible) {
  const LabRow two_of_three = over_seeds("right", {0.96, 0.995, 0.05}, LabRange::share());
  EXPECT_GE(two_of_three.low, 0);
  EXPECT_LE(two_of_three.high, 1);
  EXPECT_GT(two_of_three.high - two_of_three.low, 0.9) << "three seeds that disagree say nothing";
  const LabRow near_one = over_seeds("right", {0.948, 0.92, 0.995}, LabRange::share());
  EXPECT_LT(near_one.high, 1 + 1e-15);
  EXPECT_GT(near_one.low, 0.7);
  const LabRow loss = over_seeds("loss", {0.0004, 0.0001, 0.002}, LabRange::amount());
  EXPECT_GE(loss.low, 0);
  EXPECT_GT(loss.high, 0.002);
  const LabRow less = over_seeds("less", {0.9, 1, 0.8}, LabRange::share_difference());
  EXPECT_LE(less.high, 1);
  EXPECT_GT(less.low, 0.2);
}

// Far from its ends a bounded number has nearly the plain interval, and the ends themselves are values like others.
TEST(LabIntervals, agree_with_students_t_in_the_middle_and_are_finite_at_the_ends) {
  const LabRow plain = over_seeds("x", {0.49, 0.5, 0.51}),
               share = over_seeds("x", {0.49, 0.5, 0.51}, LabRange::share());
  EXPECT_NEAR(plain.low, share.low, 1e-4);
  EXPECT_NEAR(plain.high, share.high, 1e-4);
  const LabRow far = over_seeds("x", {99, 100, 101}, LabRange::amount()), free = over_seeds("x", {99, 100, 101});
  EXPECT_NEAR(free.low, far.low, 0.05);
  EXPECT_NEAR(free.high, far.high, 0.05);
  for (const double end : {0.0, 1.0}) {
    const LabRow all = over_seeds("x", {end, end, end}, LabRange::share());
    EXPECT_EQ(all.low, end);
    EXPECT_EQ(all.high, end);
    EXPECT_TRUE(std::isfinite(over_seeds("x", {end, 0.5, end}, LabRange::share()).low));
  }
  for (const LabRow& row : {plain, share, far, free}) {
    EXPECT_LE(row.low, row.mean) << row.mean;
    EXPECT_GE(row.high, row.mean) << row.mean;
  }
}

TEST(LabJump, is_measured_in_log_steps) {
  const auto of = [](auto height) {
    std::vector<LabPoint> points;
    for (double x = 0; x <= 1000; x += 25) points.push_back({x, height(x)});
    return jump_in_log_steps(points);
  };
  const double even = of([](double x) { return x / 1000; });
  EXPECT_NEAR(even, std::log(9.0) / std::log(1000.0), 1e-9) << "from step 100 to step 900";
  EXPECT_LT(of([](double x) { return x < 300 ? 0.0 : 1.0; }), 0.02);
  EXPECT_GT(of([](double x) { return std::log1p(x); }), 0.5) << "even in log steps: as slow as can be";
  EXPECT_EQ(of([](double) { return 0.3; }), 1) << "nothing rises";
  EXPECT_EQ(of([](double x) { return -x; }), 1);
}

Lab with_sentences() {
  return {.name = "made up",
          .claim = "",
          .claim_zh = "",
          .how = "",
          .seeds = 3,
          .rules = {{"right", LabRule::Side::above, 0.5, ""}},
          .found = {.seen = {"It got {right%} right in {steps} steps.", "用 {steps} 步答对 {right%}。"},
                    .mixed = {"", ""},
                    .not_seen = {"Only {right}.", "只有 {right}。"}},
          .measure = nullptr};
}

TEST(LabSentences, have_the_numbers_in_them) {
  LabResult result;
  result.rows = {over_seeds("right", {0.9, 0.95, 1}), over_seeds("steps", {400, 400, 400})};
  result.verdict = Verdict::seen;
  EXPECT_EQ(conclusion(with_sentences(), result).english, "It got 95 % right in 400 steps.");
  EXPECT_EQ(conclusion(with_sentences(), result).chinese, "用 400 步答对 95%。");
  result.verdict = Verdict::not_seen;
  EXPECT_EQ(conclusion(with_sentences(), result).english, "Only 0.95.");
  result.verdict = Verdict::none;
  EXPECT_NE(conclusion(with_sentences(), result).english.find("Not all seeds"), std::string::npos);
}

// A record is of the rules as they are now: whoever changes a rule runs the lab again.
void expect_of_the_lab(const Lab& lab, const OrderedJson& report) {
  ASSERT_EQ(report.at("rules").size(), lab.rules.size()) << lab.name;
  for (size_t i = 0; i < lab.rules.size(); ++i) {
    const OrderedJson& rule = report.at("rules")[i];
    EXPECT_EQ(rule.at("number"), lab.rules[i].number) << lab.name;
    EXPECT_EQ(rule.at("bound"), lab.rules[i].bound) << lab.name;
    EXPECT_EQ(rule.at("side") == "above", lab.rules[i].side == LabRule::Side::above) << lab.name;
  }
  EXPECT_EQ(report.at("claim"), lab.claim) << lab.name;
  EXPECT_EQ(std::ssize(report.at("seeds")), lab.seeds) << lab.name;
  EXPECT_FALSE(report.at("found").get<std::string>().empty()) << lab.name;
  EXPECT_FALSE(report.at("found_zh").get<std::string>().empty()) << lab.name;
  EXPECT_GT(report.at("cpu_seconds").get<double>(), 0) << lab.name;
}

TEST(LabRecords, are_of_the_labs_as_they_are) {
  for (const auto& [name, text] : recorded_labs()) {
    expect_of_the_lab(lab_named(name), OrderedJson::parse(text));
  }
}

TEST(LabRecords, of_a_second_run_have_other_seeds) {
  for (const auto& [name, text] : recorded_again()) {
    const Lab& lab = lab_named(name);
    const OrderedJson first = recorded_report(lab), again = OrderedJson::parse(text);
    expect_of_the_lab(lab, again);
    ASSERT_TRUE(first.is_object()) << name << " was run again but not recorded";
    EXPECT_GT(again.at("seeds").front().get<int64_t>(), first.at("seeds").back().get<int64_t>()) << name;
  }
}

TEST(LabRecords, stand_in_the_document) {
  const std::string document =
      read_text(test::golden("").parent_path().parent_path().parent_path() / "docs/labs.md", size_t{1} << 20);
  EXPECT_EQ(document, with_labs_table(document)) << "it is stale: run  qkv lab --docs docs/labs.md";
  expect_error([] { with_labs_table("# no place"); }, {"no place for the table"});
}

}  // namespace
}  // namespace qkv
