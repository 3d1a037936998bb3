// Five cups, a ball under one of them, and swaps: where is the ball? Following k swaps needs k steps one after another:
// products of permutations of five things cannot be computed by circuits of constant depth (Barrington 1989), unless
// those are far more powerful than believed.
#pragma once

#include "labs/small_model.h"

namespace qkv {

// What stands between question and answer.
enum class Telling : uint8_t {
  at_once,   // nothing
  steps,     // the cup after every swap
  dots,      // as many tokens, which say nothing
  shuffled,  // the cups of the steps, in random order
};

struct CupsTask {
  int32_t cups = 5;
  int32_t swaps = 16;  // places for swaps in every question; those not used are blank, and stand first

  int32_t kinds() const { return cups * (cups - 1) / 2; }
  int32_t blank() const { return cups + kinds(); }
  int32_t dot() const { return blank() + 1; }
  int64_t vocabulary() const { return dot() + 1; }
};

struct CupsProblem {
  std::vector<int32_t> question, answer;  // the last token of the answer is the cup with the ball
};
// `swaps` of them are swaps, drawn by seed, step and number.
std::vector<CupsProblem> cups_problems(const CupsTask& task, Telling telling, int32_t swaps, uint64_t seed,
                                       int64_t count);

struct CupsSchool {
  CupsTask task;
  Telling telling = Telling::at_once;
  int64_t steps = 0, step_tokens = 0, exam = 0;  // training steps, tokens in each, problems of an exam
};
// Trains a model on questions of 1 to task.swaps swaps; the share of right answers to questions of so many swaps each.
std::vector<double> cups_right(const LabContext& lab, const CupsSchool& school, std::span<const int32_t> swaps,
                               uint64_t seed);

}  // namespace qkv
