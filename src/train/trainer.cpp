#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "core/host_values.h"
#include "model/checkpoint/checkpoint.h"
#include "model/families/family.h"

namespace qkv {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The micro-batches of a step, made while the device still works on the step before.
class NextBatches {
 public:
  NextBatches(const TrainData& data, const DataParallel::Range& part, int64_t steps)
      : data_(data), part_(part), steps_(steps) {}

  // Never throws: what is wrong with a step's data is said when it is taken.
  void fetch(int64_t step) {
    if (step >= steps_) return;
    step_ = step;
    made_.clear();
    try {
      for (int64_t m = 0; m < part_.count; ++m) made_.push_back(data_.micro_batch(step, part_.first + m));
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  std::vector<TrainBatch> take(int64_t step) {
    if (step != step_) fetch(step);
    step_ = -1;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return std::exchange(made_, {});
  }

 private:
  const TrainData& data_;
  const DataParallel::Range part_;
  const int64_t steps_;
  int64_t step_ = -1;
  std::vector<TrainBatch> made_;
  std::exception_ptr error_;
};

}  // namespace

namespace {

// The weights whose tensors in files of Hugging Face's library match. Throws an Error for a part of a weight.
std::set<std::string> weights_of_tensors(const ModelSpec& spec, const std::string& pattern) {
  const Family& family = family_of(spec.family, "config.json");
  std::vector<TensorNames> schemes{hugging_face_names(spec)};
  if (family.names_otherwise != nullptr) family.names_otherwise(schemes.emplace_back(spec));
  for (const TensorNames& names : schemes) {
    std::map<std::string, std::pair<int64_t, int64_t>> counts;  // of each weight: its tensors, and those that match
    std::map<std::string, std::string> unmatched;
    for (const NamedTensor& tensor : names.tensors()) {
      const bool found = matches(pattern, tensor.name);
      for (const NamedPart& part : tensor.parts) {
        auto& [all, matching] = counts[part.weight];
        ++all;
        matching += found ? 1 : 0;
        if (!found) unmatched.emplace(part.weight, tensor.name);
      }
    }
    std::set<std::string> weights;
    for (const auto& [weight, count] : counts) {
      if (count.second == 0) continue;
      QKV_CHECK(count.first == count.second, "frozen: ", printable(pattern), " is ", count.second, " of the ",
                count.first, " tensors of ", printable(weight), ", which is trained as a whole",
                Hint("freeze ", unmatched[weight], " and the others too"));
      weights.insert(weight);
    }
    if (!weights.empty()) return weights;
  }
  return {};
}

}  // namespace

void choose_trainable(Model& model, std::span<const std::string> frozen) {
  for (auto& [name, weight] : model.weights()) {
    weight.trainable = !(name == "head.bias" && model.spec().has_source());
  }
  for (const std::string& pattern : frozen) {
    std::set<std::string> found;
    for (auto& [name, weight] : model.weights()) {
      if (matches(pattern, name)) found.insert(name);
    }
    if (found.empty()) found = weights_of_tensors(model.spec(), pattern);
    QKV_CHECK(!found.empty(), "frozen: no weight of this ", model.spec().family, " is called ", printable(pattern),
              ", the first is ", printable(model.weights().begin()->first), ", in Hugging Face's files ",
              printable(hugging_face_names(model.spec()).tensors().front().name),
              Hint("'*' matches anything: \"*.bias\""));
    for (auto& [name, weight] : model.weights()) {
      if (found.contains(name)) weight.trainable = false;
    }
  }
}

Trainer::Trainer(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data, Comm& comm)
    : Trainer(engine, recipe, model, data, comm, dry_run(engine, recipe, model, data)) {}

Trainer::Trainer(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data, Comm& comm,
                 const Peaks& peaks)
    : engine_(engine),
      recipe_(recipe),
      model_(model),
      data_(data),
      optimizer_(model.spec(), model.weights(), recipe.optimizer, comm, static_cast<int>(recipe.zero)),
      arena_(engine.device(), peaks.activations),
      gradients_(engine.device(), peaks.gradients) {}

EvalResult Trainer::evaluate() {
  EvalResult result{.step = counters_.step};
  int64_t batches = data_.validation_batches();
  if (recipe_.evaluate.batches > 0) batches = std::min(batches, recipe_.evaluate.batches);
  // Batch i is evaluated by rank i % ranks; sums are added in batch order, so the result does not depend on the ranks.
  const DataParallel& data_parallel = optimizer_.data_parallel();
  const auto ranks = static_cast<size_t>(data_parallel.comm().size()), count = static_cast<size_t>(batches);
  std::vector<double> sums(2 * count);  // nats and targets of each batch
  for (size_t i = static_cast<size_t>(data_parallel.comm().rank()); i < count; i += ranks) {
    const TrainBatch batch = data_.validation_batch(static_cast<int64_t>(i));
    if (batch.counted == 0) continue;
    arena_.rewind({});
    Context cx = engine_.context(arena_, recipe_.precision());
    const BatchLoss loss = loss_of(cx, model_, batch, {}, {});
    for (const float nats : host_floats(loss.losses)) sums[2 * i] += static_cast<double>(nats);
    sums[2 * i + 1] = static_cast<double>(batch.counted);
  }
  if (!sums.empty()) sums = data_parallel.all_gather_numbers(sums);
  double total = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t by = (i % ranks) * 2 * count;  // offset of the rank that has it
    total += sums[by + 2 * i];
    result.counted += static_cast<int64_t>(sums[by + 2 * i + 1]);
  }
  if (result.counted == 0) return result;
  result.loss = total / static_cast<double>(result.counted);
  result.perplexity = std::exp(result.loss);
  if (data_.bytes_per_token > 0) result.bits_per_byte = result.loss / std::log(2.0) / data_.bytes_per_token;
  return result;
}

StopReason Trainer::run(const TrainHooks& hooks, Probe* probe) {
  // True on all ranks if it is true on any.
  const auto on_any_rank = [&](bool mine) {
    const double number = mine ? 1 : 0;
    const std::vector<double> all = optimizer_.data_parallel().all_gather_numbers({&number, 1});
    return std::any_of(all.begin(), all.end(), [](double each) { return each != 0; });
  };
  const auto due = [](int64_t step, int64_t every) { return every > 0 && step % every == 0; };
  const auto evaluated = [&] {
    const EvalResult result = evaluate();
    const bool best = result.counted > 0 && result.loss < counters_.best;
    if (best) {
      counters_.best = result.loss;
      counters_.best_step = counters_.step;
    }
    if (result.counted > 0) {  // something is held out
      counters_.evals_without_improvement = best ? 0 : counters_.evals_without_improvement + 1;
    }
    if (hooks.on_evaluation) hooks.on_evaluation(result, best);
    return best;
  };
  const DataParallel::Range part = optimizer_.data_parallel().micro_batch_range(recipe_.micro_batches);
  NextBatches next(data_, part, recipe_.steps);
  while (counters_.step < recipe_.steps) {
    if (hooks.stop && on_any_rank(hooks.stop())) {
      if (hooks.on_save) hooks.on_save(counters_, false);
      return StopReason::stopped;
    }
    const double start = now();
    const std::vector<TrainBatch> batches = next.take(counters_.step);
    StepReport report{.step = counters_.step, .lr = recipe_.schedule.at(counters_.step)};
    report.result = train_step(engine_, arena_, gradients_, model_, optimizer_, batches,
                               {.precision = recipe_.precision(),
                                .loss = recipe_.loss,
                                .lr = report.lr,
                                .clip = recipe_.optimizer.clip,
                                .seed = recipe_.seed,
                                .step = static_cast<uint64_t>(counters_.step),
                                .recompute = recipe_.recompute,
                                .probe = probe,
                                .while_waiting = [&] { next.fetch(counters_.step + 1); }});
    report.seconds = now() - start;
    ++counters_.step;
    counters_.tokens += report.result.tokens;
    counters_.seconds += report.seconds;
    if (hooks.on_step) hooks.on_step(report);
    const bool last = counters_.step == recipe_.steps;
    const bool best = (last || due(counters_.step, recipe_.evaluate.every)) && evaluated();
    if (hooks.on_save && (last || best || due(counters_.step, recipe_.checkpoint.every)))
      hooks.on_save(counters_, best);
    const int64_t patience = recipe_.evaluate.patience;
    if (!last && patience > 0 && counters_.evals_without_improvement >= patience) return StopReason::no_improvement;
  }
  return StopReason::finished;
}

double Trainer::operations_per_step() const {
  double met = 0;  // matmul weights applied to a token
  const bool has_source = model_.spec().has_source();
  for (const WeightSpec& weight : weight_list(model_.spec())) {
    if (weight.shape.rank() < 2 || !read_by_products(weight)) continue;
    double share = 1;
    if (weight.shape.rank() == 3) {
      const std::optional<ExpertsSpec>& experts = model_.spec().decoder.layers.front().feed.experts;
      if (experts) share = static_cast<double>(experts->rule.top_k) / static_cast<double>(experts->count);
    }
    const bool lookup = !weight.in_layer && weight.name.ends_with("embed") && !model_.spec().head.tied;
    if (has_source) share /= 2;  // a token passes through the encoder or the decoder, not both
    if (!lookup) met += share * static_cast<double>(weight.shape.count());
  }
  double attention = 0;  // scores and weighted values per token; on average half of the window is visible
  for (const LayerSpec& layer : model_.spec().main_stack().layers) {
    attention += static_cast<double>(layer.attention.heads * (layer.attention.width + layer.attention.value_width));
  }
  const auto tokens = static_cast<double>(recipe_.batch_tokens);
  return tokens * (6 * met + 6 * attention * static_cast<double>(recipe_.sequence) / 2);
}

}  // namespace qkv
