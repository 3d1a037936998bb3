#include "labs/steps/cups.h"

#include <algorithm>

#include "infer/runner.h"
#include "inspect/texts/finite.h"
#include "labs/shuffle.h"

namespace qkv {
namespace {

const char* name_of(Telling telling) {
  switch (telling) {
    case Telling::at_once:
      return "at once";
    case Telling::steps:
      return "with steps";
    case Telling::dots:
      return "with dots";
    case Telling::shuffled:
      return "with shuffled steps";
  }
  return "";
}

CupsProblem draw_cups(const CupsTask& task, Telling telling, int32_t swaps, world::Draw& draw) {
  CupsProblem p;
  auto ball = static_cast<int32_t>(draw.below(static_cast<uint32_t>(task.cups)));
  const int32_t first = ball;
  std::vector<int32_t> cups;
  for (int32_t place = 0; place < task.swaps; ++place) {
    if (place < task.swaps - swaps) {
      p.question.push_back(task.blank());
    } else {
      auto kind = static_cast<int32_t>(draw.below(static_cast<uint32_t>(task.kinds())));
      p.question.push_back(task.cups + kind);
      int32_t a = 0;  // the kind-th pair a < b
      while (kind >= task.cups - 1 - a) kind -= task.cups - 1 - a++;
      const int32_t b = a + 1 + kind;
      if (ball == a || ball == b) ball = a + b - ball;
    }
    cups.push_back(ball);
  }
  p.question.push_back(first);
  cups.pop_back();  // what remains are the steps before the answer
  if (telling == Telling::dots) p.question.insert(p.question.end(), cups.size(), task.dot());
  if (telling == Telling::shuffled) shuffle(draw, cups);
  if (telling == Telling::steps || telling == Telling::shuffled) p.answer = cups;
  p.answer.push_back(ball);
  return p;
}

TrainBatch cups_batch(const CupsSchool& school, uint64_t seed, int64_t step) {
  world::Draw draw(seed, static_cast<uint64_t>(step), 5);
  TrainBatch batch;
  while (std::ssize(batch.ids) < school.step_tokens) {
    CupsProblem p = draw_cups(school.task, school.telling, draw.between(1, school.task.swaps), draw);
    const size_t answer_at = p.question.size() - 1;
    p.question.insert(p.question.end(), p.answer.begin(), p.answer.end());
    add_text(batch, p.question, answer_at);
  }
  return batch;
}

// Greedy decoding; only the last token counts.
double cups_exam(const LabContext& lab, const Model& model, std::span<const CupsProblem> all) {
  const auto longest = static_cast<int64_t>(all.front().question.size() + all.front().answer.size());
  Runner runner(model, lab.engine,
                {.precision = Precision::f32(),
                 .cache = DType::f32,
                 .positions = std::ssize(all) * KvCache::whole_pages(longest)});
  std::vector<std::vector<int32_t>> next(all.size());
  std::vector<Runner::Part> parts;
  for (size_t i = 0; i < all.size(); ++i) {
    next[i] = all[i].question;
    parts.push_back({.sequence = runner.start(), .ids = {}});
  }
  const auto wide = static_cast<size_t>(model.spec().vocabulary);
  for (size_t token = 0; token < all.front().answer.size(); ++token) {
    for (size_t i = 0; i < all.size(); ++i) parts[i].ids = next[i];
    const std::span<const float> logits = runner.pass(parts);
    check_finite(model, "a logit", logits);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto row = logits.subspan(i * wide, wide);
      next[i].assign(1, static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    lab.check("exam");
  }
  double right = 0;
  for (size_t i = 0; i < all.size(); ++i) right += next[i].front() == all[i].answer.back() ? 1 : 0;
  return right / static_cast<double>(all.size());
}

}  // namespace

std::vector<CupsProblem> cups_problems(const CupsTask& task, Telling telling, int32_t swaps, uint64_t seed,
                                       int64_t count) {
  world::Draw draw(seed, static_cast<uint64_t>(swaps), 6);
  std::vector<CupsProblem> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(draw_cups(task, telling, swaps, draw));
  return all;
}

std::vector<double> cups_right(const LabContext& lab, const CupsSchool& school, std::span<const int32_t> swaps,
                               uint64_t seed) {
  const auto model = fresh_model(
      lab, config_of({.vocabulary = school.task.vocabulary(), .width = 64, .layers = 2, .heads = 4, .init = 0.05}),
      seed);
  train_model(lab, *model,
              {.label = name_of(school.telling), .steps = school.steps, .lr = 1e-2, .batch = [&](int64_t step) {
                 return cups_batch(school, seed, step);
               }});
  std::vector<double> right;
  for (const int32_t k : swaps) {
    right.push_back(cups_exam(lab, *model, cups_problems(school.task, school.telling, k, seed, school.exam)));
  }
  return right;
}

}  // namespace qkv
