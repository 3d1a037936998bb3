#include "labs/learning/phase_exam.h"

#include <algorithm>
#include <cmath>

#include "core/host_values.h"
#include "inspect/texts/finite.h"
#include "labs/shuffle.h"
#include "model/families/family.h"

namespace qkv {
namespace {

constexpr int32_t kPhaseLength = 64;
constexpr auto kPhaseWords = static_cast<size_t>(SmallLanguage::kVocabulary);

// Shuffled: the words of many texts in random order, so that nothing but frequencies is left.
std::vector<int32_t> phase_text(world::Draw& draw, bool shuffled) {
  constexpr int32_t kMany = 16;
  if (!shuffled) return SmallLanguage::text(draw, kPhaseLength + 1);
  std::vector<int32_t> words;
  for (int32_t i = 0; i < kMany; ++i) {
    const std::vector<int32_t> more = SmallLanguage::text(draw, kPhaseLength + 1);
    words.insert(words.end(), more.begin(), more.end());
  }
  shuffle(draw, words);
  words.resize(static_cast<size_t>(kPhaseLength + 1));
  return words;
}

// KL(softmax(logits) || from)
double divergence(std::span<const float> logits, std::span<const float> from) {
  const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double all = 0, sum = 0;
  for (const float x : logits) all += std::exp(static_cast<double>(x) - most);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(logits[i]) - most - std::log(all);
    sum += std::exp(log_p) * (log_p - std::log(static_cast<double>(from[i])));
  }
  return sum;
}

}  // namespace

PhaseExam::PhaseExam(uint64_t seed, int64_t texts) {
  constexpr int64_t kCountedTexts = 2000;
  world::Draw draw(seed, 0, 17);
  for (int64_t i = 0; i < texts; ++i) {
    const std::vector<int32_t> words = phase_text(draw, false);
    add_text(batch_, words);
    const std::span<const int32_t> read = std::span(words).first(kPhaseLength);
    for (std::vector<float>& p : SmallLanguage::by_grammar(read)) {
      for (float& share : p)
        share = 0.999F * share + 0.001F / SmallLanguage::kVocabulary;  // so that no distance is infinite
      grammar_.push_back(std::move(p));
    }
    const std::vector<bool> known = SmallLanguage::before_known_name(read);
    known_name_.insert(known_name_.end(), known.begin(), known.end());
  }
  counts_ = std::make_unique<TokenCounts>(SmallLanguage::kVocabulary, batch_.ids);
  for (int64_t i = 0; i < kCountedTexts; ++i) {
    const std::vector<int32_t> words = phase_text(draw, false);
    counts_->add(std::span(words).first(kPhaseLength), std::span(words).subspan(1));
  }
  counts_->finish();
}

std::vector<float> PhaseExam::logits(const Engine& engine, const Model& model) const {
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  const BatchInput in(cx, batch_);
  std::vector<float> all = host_floats(model.logits(cx, in.input));
  check_finite(model, "a logit", all);
  return all;
}

PhaseDistance PhaseExam::distance(std::span<const float> logits) const {
  PhaseDistance sum;
  double names = 0;
  for (size_t row = 0; row < batch_.ids.size(); ++row) {
    const std::span<const float> of = logits.subspan(row * kPhaseWords, kPhaseWords);
    const TokenCounts::Distance d = counts_->distance(of, batch_.ids[row], batch_.targets[row]);
    sum.unigram += d.unigram;
    sum.bigram += d.bigram;
    sum.grammar += divergence(of, grammar_[row]);
    sum.loss += d.loss;
    if (!known_name_[row]) continue;
    sum.known_names += d.loss;
    ++names;
  }
  const auto rows = static_cast<double>(batch_.ids.size());
  return {.unigram = sum.unigram / rows,
          .bigram = sum.bigram / rows,
          .grammar = sum.grammar / rows,
          .known_names = names > 0 ? sum.known_names / names : 0,
          .loss = sum.loss / rows};
}

PhaseRun run_phases(const LabContext& lab, const PhaseExam& exam, const PhaseSchool& school, uint64_t seed) {
  ModelSpec spec = read_spec(Config(config_of({.vocabulary = SmallLanguage::kVocabulary,
                                               .width = 64,
                                               .layers = school.layers,
                                               .heads = 4,
                                               .context = 128,
                                               .init = 0.05}),
                                    "the lab's model"));
  for (LayerSpec& layer : spec.decoder.layers) layer.feed.width = 0;
  const auto model = fresh_model(lab, std::move(spec), seed);
  PhaseRun run;
  int64_t next = 0;
  train_model(lab, *model,
              {.label = school.shuffled      ? "shuffled words"
                        : school.layers == 1 ? "1 layer"
                                             : "2 layers",
               .steps = school.steps,
               .lr = 4e-3,
               .batch =
                   [&](int64_t step) {
                     world::Draw draw(seed, static_cast<uint64_t>(step), 18);
                     TrainBatch batch;
                     for (int i = 0; i < 24; ++i) add_text(batch, phase_text(draw, school.shuffled));
                     return batch;
                   },
               .eval_every = 1,
               .on_eval =
                   [&](int64_t done) {
                     if (done < next && done < school.steps) return;
                     next = done + std::max<int64_t>(1, done / 7);
                     run.last = exam.logits(lab.engine, *model);
                     run.points.push_back({static_cast<double>(done), exam.distance(run.last)});
                   }});
  return run;
}

PhaseRun even_path(const PhaseExam& exam, const PhaseRun& run) {
  constexpr int kParts = 40;
  PhaseRun path;
  for (int part = 0; part <= kParts; ++part) {
    std::vector<float> logits = run.last;
    for (float& x : logits) x *= static_cast<float>(part) / kParts;
    path.points.push_back({static_cast<double>(part), exam.distance(logits)});
  }
  return path;
}

}  // namespace qkv
