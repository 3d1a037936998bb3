// Addition with and without intermediate steps, by models of equal size trained on equally many tokens.
#include <algorithm>

#include "infer/runner.h"
#include "inspect/texts/finite.h"
#include "labs/labs.h"
#include "labs/small_model.h"
#include "world/draw.h"

namespace qkv::labs {
namespace {

// Token ids 0 to 9 are the digits.
constexpr int32_t kPlus = 10, kEquals = 11, kComma = 12, kEnd = 13, kSumVocabulary = 14;
constexpr int64_t kStepTokens = 2048, kHeldOut = 400;

// Sums of single digits need only an average over positions; sums with carries need more.
struct Task {
  const char* name;
  int numbers;
  int digits;      // of each number
  int sum_digits;  // of every sum, leading zeros written
  int64_t steps;
};
constexpr Task kEasy{.name = "eight digits", .numbers = 8, .digits = 1, .sum_digits = 2, .steps = 400};
constexpr Task kHard{.name = "five two-digit numbers", .numbers = 5, .digits = 2, .sum_digits = 3, .steps = 700};

struct Problem {
  std::vector<int32_t> question, answer;  // 3+9+...+4=   and   43;   or   12,...,43;
};

void write_number(std::vector<int32_t>& to, int32_t n, int digits) {
  const size_t first = to.size();
  for (int d = 0; d < digits; ++d, n /= 10) to.push_back(n % 10);
  std::reverse(to.begin() + static_cast<std::ptrdiff_t>(first), to.end());
}

// An eighth of all problems, chosen by a hash, is held out for the exam.
Problem draw_problem(const Task& task, world::Draw& draw, bool aloud, bool exam) {
  std::vector<int32_t> numbers(static_cast<size_t>(task.numbers));
  const uint32_t below = task.digits == 1 ? 10 : 100;
  uint32_t hash = 0;
  do {
    hash = 2166136261U;
    for (int32_t& n : numbers) {
      n = static_cast<int32_t>(draw.below(below));
      hash = (hash ^ static_cast<uint32_t>(n)) * 16777619U;
    }
  } while (((hash >> 16) % 8 == 0) != exam);

  Problem p;
  int32_t sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) p.question.push_back(kPlus);
    write_number(p.question, numbers[i], task.digits);
    sum += numbers[i];
    if (i == 0 || (!aloud && i + 1 < numbers.size())) continue;
    if (!p.answer.empty()) p.answer.push_back(kComma);
    write_number(p.answer, sum, task.sum_digits);
  }
  p.question.push_back(kEquals);
  p.answer.push_back(kEnd);
  return p;
}

TrainBatch problem_batch(const Task& task, uint64_t seed, int64_t step, bool aloud) {
  world::Draw draw(seed, static_cast<uint64_t>(step), 5);
  TrainBatch batch;
  while (std::ssize(batch.ids) < kStepTokens) {
    Problem p = draw_problem(task, draw, aloud, false);
    const size_t answer_at = p.question.size() - 1;
    p.question.insert(p.question.end(), p.answer.begin(), p.answer.end());
    add_text(batch, p.question, answer_at);
  }
  return batch;
}

// Greedy decoding; only the last number counts.
double exam(const LabContext& lab, const Model& model, const Task& task, uint64_t seed, bool aloud) {
  const int64_t problems = lab.sized(kHeldOut, 20);
  world::Draw draw(seed, 0, 6);
  std::vector<Problem> all;
  for (int64_t i = 0; i < problems; ++i) all.push_back(draw_problem(task, draw, aloud, true));
  const auto longest = static_cast<int64_t>(all.front().question.size() + all.front().answer.size());

  Runner runner(
      model, lab.engine,
      {.precision = Precision::f32(), .cache = DType::f32, .positions = problems * KvCache::whole_pages(longest)});
  std::vector<std::vector<int32_t>> written(all.size()), next(all.size());
  std::vector<Runner::Part> parts;
  for (size_t i = 0; i < all.size(); ++i) {
    next[i] = all[i].question;
    parts.push_back({.sequence = runner.start(), .ids = {}});
  }
  for (size_t token = 0; token < all.front().answer.size(); ++token) {
    for (size_t i = 0; i < all.size(); ++i) parts[i].ids = next[i];
    const std::span<const float> logits = runner.pass(parts);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto row = logits.subspan(i * kSumVocabulary, kSumVocabulary);
      check_finite(model, "a logit", row);
      written[i].push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      next[i].assign(1, written[i].back());
    }
    lab.check("exam");
  }
  const std::ptrdiff_t last = task.sum_digits + 1;
  double right = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    right += std::equal(written[i].end() - last, written[i].end(), all[i].answer.end() - last) ? 1 : 0;
  }
  return right / static_cast<double>(problems);
}

double accuracy(const LabContext& lab, const Task& task, uint64_t seed, bool aloud) {
  const auto model = fresh_model(
      lab, config_of({.vocabulary = kSumVocabulary, .width = 64, .layers = 2, .heads = 4, .context = 64}), seed);
  train_model(lab, *model,
              {.label = std::string(task.name) + (aloud ? " with steps" : " at once"),
               .steps = lab.sized(task.steps),
               .lr = 5e-3,
               .batch = [&](int64_t step) { return problem_batch(task, seed, step, aloud); }});
  return exam(lab, *model, task, seed, aloud);
}

SeedNumbers measure_thinking_aloud(const LabContext& lab, uint64_t seed) {
  SeedNumbers out;
  for (const Task& task : {kEasy, kHard}) {
    const double aloud = accuracy(lab, task, seed, true), at_once = accuracy(lab, task, seed, false);
    const std::string name = task.name;
    out.add(name + ": right with worked steps", aloud);
    out.add(name + ": right at once", at_once);
    out.add(name + ": with steps less at once", aloud - at_once);
  }
  return out;
}

}  // namespace

const Lab& thinking_aloud() {
  static const Lab lab{
      .name = "thinking-aloud",
      .claim = "A model that writes intermediate steps adds better than one of equal size that gives the sum at once.",
      .claim_zh = "同样大小的模型，把中间步骤写出来，比直接说出答案算得更准。",
      .how =
          "Two tasks: eight digits, 3+9+...+4=43; at once or =12,...,43; with every partial sum, and five two-digit\n"
          "numbers, where sums carry. Two layers of width 64, 400 and 700 steps of 2048 tokens each, so the model\n"
          "without steps sees more problems. The exam is 400 held-out problems, answered token by token; the last\n"
          "number must be right.",
      .seeds = 3,
      .rules = {{"eight digits: with steps less at once", LabRule::Side::above, 0.1, "a tenth of all problems"},
                {"five two-digit numbers: with steps less at once", LabRule::Side::above, 0.1,
                 "a tenth of all problems"}},
      .measure = measure_thinking_aloud};
  return lab;
}

}  // namespace qkv::labs
