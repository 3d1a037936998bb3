// A recipe and data for tests, a model in training whose state is a function of the step, and the contents of its run folder.
#pragma once

#include <array>
#include <bit>
#include <fstream>

#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "train/run_folder.h"

namespace qkv::test {

namespace fs = std::filesystem;

inline Recipe some_recipe() {
  return read_recipe(parse_json(R"({"name": "测试", "model": {"model_type": "gpt2"}, "steps": 100,
                                    "tokenizer": {"train": "char"}, "data": {"world": "zh", "stories": 3}})",
                                "test"),
                     "test");
}

// The same sixteen tokens in every micro-batch.
class FewTokens final : public TrainData {
 public:
  TrainBatch micro_batch(int64_t, int64_t) const override {
    return {.ids = some_ids(16, 1), .targets = some_ids(16, 2), .lengths = {16}, .counted = 16};
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }
};

using Bits = std::map<std::string, std::vector<uint32_t>>;

// A model and optimiser in the state of some step: arbitrary finite bits, a function of the step.
struct Training {
  explicit Training(const std::string& family, const OptimizerSpec& rule = {})
      : start(Checkpoint::open(golden(family))),
        model(start.model()),
        optimizer(model->spec(), model->weights(), rule) {}

  static void scramble(const Tensor& t, uint32_t& state) {
    auto* bits = t.as<uint32_t>();
    for (int64_t i = 0; i < t.count(); ++i) {
      state = state * 1664525 + 1013904223;
      bits[i] = (state & 0x7F800000) == 0x7F800000 ? state & 0x807FFFFF : state;  // denormals too
    }
  }
  void go_to(int64_t step) {
    auto state = static_cast<uint32_t>(step);
    for (auto& [name, weight] : model->weights()) {
      scramble(weight.writable(pass.cx), state);
      weight.updated();
    }
    for (const Optimizer::State& kept : optimizer.states()) scramble(kept.tensor, state);
    optimizer.set_steps(step + 7);
    counters = {.step = step,
                .tokens = step << 40,
                .seconds = 0.1 * static_cast<double>(step),
                .best = 1.0 / 3,
                .best_step = step - step % 3,
                .evals_without_improvement = step % 3};
  }
  void save(RunFolder& run, bool best = false) const { run.save(*model, start.config, optimizer, counters, best); }
  bool load(const RunFolder& run) { return run.load_newest(*model, optimizer, counters); }

  static std::vector<uint32_t> bits_of(const Tensor& t) { return {t.as<uint32_t>(), t.as<uint32_t>() + t.count()}; }
  static Bits weights_of(const Weights& weights) {
    Bits all;
    for (const auto& [name, weight] : weights) all[name] = bits_of(weight.master());
    return all;
  }
  Bits bits() const {
    Bits all = weights_of(model->weights());
    for (const Optimizer::State& kept : optimizer.states()) all[kept.name] = bits_of(kept.tensor);
    const TrainCounters& c = counters;
    const auto add = [&, at = &all["counters"]](auto value) {
      const auto b = std::bit_cast<std::array<uint32_t, 2>>(value);
      at->insert(at->end(), b.begin(), b.end());
    };
    for (const int64_t n : {c.step, c.tokens, c.best_step, c.evals_without_improvement, optimizer.steps()}) add(n);
    for (const double n : {c.seconds, c.best}) add(n);
    return all;
  }

  Pass pass;
  Checkpoint start;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
  TrainCounters counters;
};

inline std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<int64_t> steps_in(const fs::path& file) {
  std::vector<int64_t> steps;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) steps.push_back(Json::parse(line).at("step").get<int64_t>());
  return steps;
}

}  // namespace qkv::test
