// Planted: labs whose mechanism is taken away. The verdict, not only a number, must change.
#include "labs/planted.h"

#include <gtest/gtest.h>

#include <iostream>

#include "kernels/tables.h"
#include "labs/labs.h"

namespace qkv {
namespace {

LabResult run_as(const Lab& lab, SeedNumbers (*measure)(const LabContext&, uint64_t), double size) {
  static const Engine engine(kernels::best_table(), {.threads = 1});
  Lab changed = lab;
  changed.measure = measure;
  LabResult result = run_lab(changed, {.engine = engine, .size = size}, 3);
  std::cout << lab.name << ": " << name_of(result.verdict) << '\n';
  for (const Judged& j : result.judged) {
    for (const LabRow& row : result.rows) {
      if (row.name == j.rule.number) {
        std::cout << (j.held ? "  yes " : "  no  ") << row.name << ": " << row.mean << " [" << row.low << ", "
                  << row.high << "]\n";
      }
    }
  }
  return result;
}

// Without training: what the softmax alone says.
TEST(LabPlants, without_the_scale_saturation_is_not_held_back) {
  const LabResult whole = run_as(
      labs::scale(), [](const LabContext& lab, uint64_t seed) { return labs::scale_numbers(lab, seed); }, 0.003);
  const LabResult planted = run_as(
      labs::scale(), [](const LabContext& lab, uint64_t seed) { return labs::scale_numbers(lab, seed, 1.0); }, 0.003);
  EXPECT_EQ(whole.parts[0], Verdict::seen);
  EXPECT_NE(planted.parts[0], Verdict::seen);
  EXPECT_NE(planted.parts[1], Verdict::seen);
}

TEST(LabPlantsLong, without_the_scale_training_does_not_differ) {
  const LabResult whole = run_as(
      labs::scale(), [](const LabContext& lab, uint64_t seed) { return labs::scale_numbers(lab, seed); }, 1);
  const LabResult planted = run_as(
      labs::scale(), [](const LabContext& lab, uint64_t seed) { return labs::scale_numbers(lab, seed, 1.0); }, 1);
  EXPECT_EQ(whole.parts[2], Verdict::seen);
  EXPECT_EQ(planted.parts[2], Verdict::not_seen);
}

TEST(LabPlantsLong, tied_heads_flip_one_head) {
  const LabResult whole = run_as(
      labs::one_head(), [](const LabContext& lab, uint64_t seed) { return labs::one_head_numbers(lab, seed); }, 0.6);
  const LabResult planted = run_as(
      labs::one_head(),
      [](const LabContext& lab, uint64_t seed) { return labs::one_head_numbers(lab, seed, OneLayer::Tie::heads); },
      0.6);
  EXPECT_EQ(whole.verdict, Verdict::seen);
  EXPECT_NE(planted.verdict, Verdict::seen);
}

TEST(LabPlantsLong, shuffled_steps_flip_thinking_aloud) {
  const LabResult whole = run_as(
      labs::thinking_aloud(),
      [](const LabContext& lab, uint64_t seed) { return labs::thinking_aloud_numbers(lab, seed); }, 1);
  const LabResult planted = run_as(
      labs::thinking_aloud(),
      [](const LabContext& lab, uint64_t seed) { return labs::thinking_aloud_numbers(lab, seed, Telling::shuffled); },
      1);
  EXPECT_EQ(whole.verdict, Verdict::seen);
  EXPECT_NE(planted.verdict, Verdict::seen);
}

TEST(LabPlantsLong, words_in_random_order_flip_phases) {
  const LabResult whole = run_as(
      labs::phases(), [](const LabContext& lab, uint64_t seed) { return labs::phases_numbers(lab, seed); }, 1);
  const LabResult planted = run_as(
      labs::phases(), [](const LabContext& lab, uint64_t seed) { return labs::phases_numbers(lab, seed, true); }, 1);
  EXPECT_EQ(whole.verdict, Verdict::seen);
  EXPECT_NE(planted.verdict, Verdict::seen);
}

}  // namespace
}  // namespace qkv
