#include "labs/facts/memorising.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "core/host_values.h"
#include "labs/shuffle.h"
#include "model/families/family.h"

namespace qkv {
namespace {

using Form = FactMemory::Form;
constexpr int64_t kMemoryWidth = 32, kExperts = 16, kVisited = 2, kExpertWidth = 16;

// Hidden width of the dense forms. A hidden unit is 3 x 32 products, the router 16 x 32, so the router is worth 5 1/3.
int64_t dense_width(Form form) {
  return form == Form::large ? kExperts * kExpertWidth : kVisited * kExpertWidth + 6;
}

const char* name_of(Form form) {
  static constexpr std::array kNames{"one dense block", "experts", "experts tied together", "a large dense block"};
  return kNames[static_cast<size_t>(form)];
}

bool has_experts(Form form) {
  return form == Form::experts || form == Form::tied;
}

// Experts that begin equal and get the sum of all their gradients at every step are one expert.
class TiedExperts {
 public:
  TiedExperts(const LabContext& lab, Model& model) : lab_(lab) {
    for (auto& [name, weight] : model.weights()) {
      if (name.find("mlp.experts.") != std::string::npos) tied_.push_back(&weight);
    }
    for (const Param* weight : tied_) {
      std::vector<float> all = host_floats(weight->master());
      const std::ptrdiff_t one = std::ssize(all) / kExperts;
      for (std::ptrdiff_t e = 1; e < kExperts; ++e) std::copy(all.begin(), all.begin() + one, all.begin() + e * one);
      put(weight->master(), all);
    }
  }

  void sum_gradients() const {
    for (const Param* weight : tied_) {
      std::vector<float> all = host_floats(weight->gradient());
      const size_t one = all.size() / kExperts;
      for (size_t i = 0; i < one; ++i) {
        float sum = 0;
        for (size_t e = 0; e < kExperts; ++e) sum += all[e * one + i];
        for (size_t e = 0; e < kExperts; ++e) all[e * one + i] = sum;
      }
      put(weight->gradient(), all);
    }
  }

  void check_tied() const {
    for (const Param* weight : tied_) {
      const std::vector<float> all = host_floats(weight->master());
      const std::ptrdiff_t one = std::ssize(all) / kExperts;
      for (std::ptrdiff_t e = 1; e < kExperts; ++e) {
        QKV_ASSERT(std::equal(all.begin(), all.begin() + one, all.begin() + e * one), weight->name(),
                   ": the experts 0 and ", e, " were to be one and differ");
      }
    }
  }

 private:
  void put(const Tensor& to, const std::vector<float>& numbers) const {
    lab_.engine.device().upload(to.data(), numbers.data(), std::ssize(numbers) * size_of(DType::f32));
  }

  const LabContext& lab_;
  std::vector<const Param*> tied_;
};

}  // namespace

FactTable::FactTable(int64_t facts, uint64_t seed) {
  world::Draw draw(seed, 0, 13);
  std::vector<int32_t> pairs(static_cast<size_t>(kSubjects) * kRelations);
  std::iota(pairs.begin(), pairs.end(), 0);
  shuffle(draw, pairs);
  pairs_.assign(pairs.begin(), pairs.begin() + std::min<std::ptrdiff_t>(facts, std::ssize(pairs)));
  values_.resize(pairs.size());
  for (int32_t& value : values_) value = static_cast<int32_t>(draw.below(kValues));
}

void FactTable::add(TrainBatch& batch, int32_t pair) const {
  batch.ids.insert(batch.ids.end(), {pair / kRelations, kSubjects + pair % kRelations});
  batch.targets.insert(batch.targets.end(), {TrainBatch::kIgnored, values_[static_cast<size_t>(pair)]});
  batch.lengths.push_back(2);
  ++batch.counted;
}

TrainBatch FactTable::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 14);
  TrainBatch batch;
  for (int64_t i = 0; i < count; ++i) add(batch, draw.pick(pairs_));
  return batch;
}

TrainBatch FactTable::all() const {
  TrainBatch batch;
  for (const int32_t pair : pairs_) add(batch, pair);
  return batch;
}

double feed_forward_products(Form form) {
  const int64_t hidden = has_experts(form) ? kVisited * kExpertWidth : dense_width(form);
  return static_cast<double>(3 * kMemoryWidth * hidden + (has_experts(form) ? kExperts * kMemoryWidth : 0));
}

double facts_known(const LabContext& lab, const FactMemory& memory, uint64_t seed) {
  const FactTable table(memory.facts, seed);
  ModelSpec spec = read_spec(Config(config_of({.vocabulary = FactTable::kVocabulary,
                                               .width = kMemoryWidth,
                                               .layers = 1,
                                               .heads = 2,
                                               .context = 16,
                                               .init = 0.1}),
                                    "the lab's model"));
  FeedForwardSpec& feed = spec.decoder.layers.front().feed;
  feed.width = dense_width(memory.form);
  if (has_experts(memory.form)) {
    feed.experts =
        ExpertsSpec{.count = kExperts, .width = kExpertWidth, .rule = {.top_k = kVisited, .renormalise = true}};
  }
  const auto model = fresh_model(lab, std::move(spec), seed);
  LabTraining training{.label = std::to_string(memory.facts) + " facts, " + name_of(memory.form),
                       .steps = memory.steps,
                       .lr = 1e-2,
                       .balance = has_experts(memory.form) ? 0.01 : 0,
                       .batch = [&](int64_t step) { return table.texts(seed, step, 512); }};
  if (memory.form != Form::tied) {
    train_model(lab, *model, training);
  } else {
    const TiedExperts tied(lab, *model);
    training.before_update = [&](Context&) { tied.sum_gradients(); };
    train_model(lab, *model, training);
    tied.check_tied();
  }
  return share_right(lab.engine, *model, table.all());
}

}  // namespace qkv
