// Sums with and without worked steps, by models of equal size that are taught equally many tokens.
#include <algorithm>

#include "infer/runner.h"
#include "labs/labs.h"
#include "labs/small_model.h"
#include "text/world/draw.h"

namespace qkv::labs {
namespace {

// 0 to 9 are the digits.
constexpr int32_t kPlus = 10, kEquals = 11, kComma = 12, kEnd = 13, kVocabulary = 14;
constexpr int kNumbers = 8;
constexpr int64_t kStepTokens = 2048, kHeldOut = 400;

struct Problem {
  std::vector<int32_t> question, answer;  // 3+9+...+4=   and   43;   or   12,...,43;
};

void write_number(std::vector<int32_t>& to, int32_t n) {
  to.push_back(n / 10);
  to.push_back(n % 10);
}

// An eighth of all problems is for the exam alone, whoever draws.
Problem draw_problem(world::Draw& draw, bool aloud, bool exam) {
  std::vector<int32_t> digits(kNumbers);
  uint32_t hash = 0;
  do {
    hash = 2166136261U;
    for (int32_t& d : digits) {
      d = static_cast<int32_t>(draw.below(10));
      hash = (hash ^ static_cast<uint32_t>(d)) * 16777619U;
    }
  } while (((hash >> 16) % 8 == 0) != exam);

  Problem p;
  int32_t sum = digits[0];
  p.question.push_back(digits[0]);
  for (size_t i = 1; i < digits.size(); ++i) {
    p.question.push_back(kPlus);
    p.question.push_back(digits[i]);
    sum += digits[i];
    if (!aloud && i + 1 < digits.size()) continue;
    if (!p.answer.empty()) p.answer.push_back(kComma);
    write_number(p.answer, sum);
  }
  p.question.push_back(kEquals);
  p.answer.push_back(kEnd);
  return p;
}

TrainBatch lesson(uint64_t seed, int64_t step, bool aloud) {
  world::Draw draw(seed, static_cast<uint64_t>(step), 5);
  TrainBatch batch;
  while (std::ssize(batch.ids) < kStepTokens) {
    Problem p = draw_problem(draw, aloud, false);
    const size_t answer_at = p.question.size() - 1;
    p.question.insert(p.question.end(), p.answer.begin(), p.answer.end());
    add_text(batch, p.question, answer_at);
  }
  return batch;
}

// The model writes on its own, the likeliest token each time; only the last number counts.
double exam(const LabContext& lab, const Model& model, uint64_t seed, bool aloud) {
  const int64_t problems = lab.sized(kHeldOut, 20);
  world::Draw draw(seed, 0, 6);
  std::vector<Problem> all;
  for (int64_t i = 0; i < problems; ++i) all.push_back(draw_problem(draw, aloud, true));
  const auto longest = static_cast<int64_t>(all.front().question.size() + all.front().answer.size());

  Runner runner(
      model, lab.engine,
      {.precision = Precision::f32(), .cache = DType::f32, .positions = problems * (longest + KvCache::kPage)});
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
      const auto row = logits.subspan(i * kVocabulary, kVocabulary);
      written[i].push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      next[i].assign(1, written[i].back());
    }
    lab.check("exam");
  }
  double right = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    right += std::equal(written[i].end() - 3, written[i].end(), all[i].answer.end() - 3) ? 1 : 0;
  }
  return right / static_cast<double>(problems);
}

double accuracy(const LabContext& lab, uint64_t seed, bool aloud) {
  const auto model =
      fresh_model(config_of({.vocabulary = kVocabulary, .width = 64, .layers = 2, .heads = 4, .context = 64}), seed);
  teach(
      lab, *model,
      {.what = aloud ? "with steps" : "without steps", .steps = lab.sized(500), .lr = 5e-3, .batch = [&](int64_t step) {
         return lesson(seed, step, aloud);
       }});
  return exam(lab, *model, seed, aloud);
}

SeedNumbers measure(const LabContext& lab, uint64_t seed) {
  SeedNumbers out;
  const double aloud = accuracy(lab, seed, true), silent = accuracy(lab, seed, false);
  out.add("right with worked steps", aloud);
  out.add("right without", silent);
  out.add("with less without", aloud - silent);
  return out;
}

}  // namespace

const Lab& thinking_aloud() {
  static const Lab lab{
      .name = "thinking-aloud",
      .claim = "A model that writes its worked steps adds better than one of equal size that must say the sum at once.",
      .claim_zh = "同样大小的模型，把中间步骤写出来，比直接说出答案算得更准。",
      .how =
          "Eight digits are added: 3+9+...+4=43; at once, or =12,...,43; with every sum on the way. Two layers of\n"
          "width 64, 500 steps of 2048 tokens each, so that the model without steps sees more problems. The exam is\n"
          "400 problems nobody was taught, written token by token; the last number must be right.",
      .seeds = 3,
      .rules = {{"right with worked steps", LabRule::Side::above, 0.8, "it can add"},
                {"with less without", LabRule::Side::above, 0.2, "a fifth of all problems"}},
      .measure = measure};
  return lab;
}

}  // namespace qkv::labs
