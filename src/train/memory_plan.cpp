// What a run will need: planned without kernels and without memory, and what would need less.
#include <algorithm>
#include <map>

#include "core/gradient_watch.h"
#include "train/trainer.h"

namespace qkv {
namespace {

int64_t plan_bytes(const Param& weight) {
  return weight.shape().count() * size_of(DType::f32);
}

// Of a weight's copies for products of bf16. What norms, routers and lookups read is the master.
int64_t copied_bytes(const WeightSpec& weight, bool of_head, bool as_tiles) {
  const bool product = read_by_products(weight) && (weight.part != Part::embedding || of_head);
  const bool bias = weight.name.ends_with(".bias") && weight.part != Part::norm && weight.part != Part::router;
  int64_t count = product || bias ? weight.shape.count() : 0;
  if (product && as_tiles) count += tiles_shape(weight.shape).count();
  return count * size_of(DType::bf16);
}

// Most bytes of gradients beside the sums of a tree, in the micro-batch that ends it. Each weight has `sums` of them then;
// once its gradient is complete one is left.
class GradientsBesideSums final : public GradientWatch {
 public:
  GradientsBesideSums(const Tape& tape, int64_t sums) : GradientWatch(tape), sums_(sums) {}
  int64_t most() const { return most_; }

 private:
  void begun(const Param& weight) override {
    growing_ += plan_bytes(weight);
    most_ = std::max(most_, growing_ - (sums_ - 1) * complete_);
  }
  void complete(Context&, const Param& weight) override {
    growing_ -= plan_bytes(weight);
    complete_ += plan_bytes(weight);
  }

  int64_t sums_, growing_ = 0, complete_ = 0, most_ = 0;
};

void append(std::vector<int32_t>& to, const std::vector<int32_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// The texts of `all` that are among the first `share` of its rows, at least one.
TrainBatch first_texts(const TrainBatch& all, double share) {
  TrainBatch part;
  size_t rows = 0, source_rows = 0;
  const double limit = share * static_cast<double>(all.ids.size());
  for (size_t i = 0; i < all.lengths.size(); ++i) {
    const auto length = static_cast<size_t>(all.lengths[i]);
    if (i > 0 && static_cast<double>(rows + length) > limit) break;
    rows += length;
    part.lengths.push_back(all.lengths[i]);
    if (all.source_lengths.empty()) continue;
    source_rows += static_cast<size_t>(all.source_lengths[i]);
    part.source_lengths.push_back(all.source_lengths[i]);
  }
  const auto first = [](const std::vector<int32_t>& numbers, size_t count) {
    return std::vector<int32_t>(numbers.begin(), numbers.begin() + static_cast<int64_t>(count));
  };
  part.ids = first(all.ids, rows);
  part.targets = first(all.targets, rows);
  part.source_ids = first(all.source_ids, source_rows);
  part.counted = static_cast<int64_t>(rows);
  return part;
}

// The data of a run as another recipe would divide it into micro-batches; of the first one alone.
class OtherwiseDivided final : public TrainData {
 public:
  // `share`: the tokens of a micro-batch, over those that `data` gives.
  OtherwiseDivided(const TrainData& data, double share) : data_(data), share_(share) {
    train_tokens = data.train_tokens;
  }
  TrainBatch micro_batch(int64_t step, int64_t micro) const override {
    TrainBatch all = data_.micro_batch(step, micro);
    if (share_ < 1) return first_texts(all, share_);
    for (int64_t m = 1; m < static_cast<int64_t>(share_); ++m) {
      const TrainBatch more = data_.micro_batch(step, micro + m);
      append(all.ids, more.ids);
      append(all.targets, more.targets);
      append(all.lengths, more.lengths);
      append(all.source_ids, more.source_ids);
      append(all.source_lengths, more.source_lengths);
      all.counted += more.counted;
    }
    return all;
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }

 private:
  const TrainData& data_;
  double share_;
};

bool reads_windows(const Recipe& recipe) {
  return recipe.objective == Recipe::Objective::causal || recipe.objective == Recipe::Objective::masked;
}

// Whether so many micro-batches can divide the recipe's step.
bool divides(const Recipe& recipe, int64_t micro_batches) {
  const int64_t tokens = recipe.batch_tokens / micro_batches;
  return reads_windows(recipe) ? recipe.batch_tokens % (micro_batches * recipe.sequence) == 0
                               : tokens >= recipe.sequence;
}

}  // namespace

Trainer::Memory Trainer::plan(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data,
                              Comm& comm) {
  Memory memory{.free = engine.device().free_bytes()};
  std::vector<Param*> trainable;
  int64_t gradients = 0;  // once
  for (auto& [name, weight] : model.weights()) {
    memory.weights += plan_bytes(weight);
    if (!weight.trainable) continue;
    gradients += plan_bytes(weight);
    trainable.push_back(&weight);
  }
  const DataParallel data_parallel(comm, trainable, static_cast<int>(recipe.zero));
  std::map<std::string, int64_t> states;  // of each weight
  for (const WeightSpec& spec : weight_list(model.spec())) {
    const bool of_head = model.weights().find(spec.name) == &model.head().weight();
    if (recipe.bf16) memory.copies += copied_bytes(spec, of_head, engine.kernels().wants_tiles);
    states[spec.name] = Optimizer::bytes(recipe.optimizer, spec);
  }
  for (size_t i = 0; i < trainable.size(); ++i) {
    const int64_t bytes = states.at(trainable[i]->name());
    if (data_parallel.keeps(i)) {
      memory.states += bytes;
    } else if (comm.rank() == 0) {
      memory.gathered += bytes;
    }
  }
  // Sums of the tree while micro-batches run; then the one of all, and what ranks exchange.
  const int64_t micro_batches = data_parallel.micro_batch_range(recipe.micro_batches).count;
  const int64_t sums = GradientTree::most_sums(micro_batches);
  const int64_t exchange = gradients + data_parallel.exchanged_bytes();
  memory.gradients = std::max(sums * gradients, exchange);

  // What cannot fit is not even read: ids and targets of a step, and the residual stream of a micro-batch.
  const auto all = static_cast<int64_t>(data.train_tokens);  // batches of pairs and chats are no larger
  const int64_t rows = reads_windows(recipe) ? recipe.batch_tokens : std::min(recipe.batch_tokens, all);
  const int64_t least = 2 * rows / comm.size() * size_of(DType::i32) +
                        rows / recipe.micro_batches * model.spec().width * size_of(DType::f32);
  if (memory.total() + least > memory.free) {
    memory.activations = least;
    return memory;
  }

  const Peaks peaks = dry_run(engine, recipe, model, data, sums);
  memory.activations = peaks.activations + peaks.gradients;
  if (micro_batches > 1) memory.gradients = std::max(sums * gradients + peaks.beside_sums, exchange);
  return memory;
}

// One micro-batch without kernels and without memory.
Trainer::Peaks Trainer::dry_run(const Engine& engine, const Recipe& recipe, Model& model, const TrainData& data,
                                int64_t sums) {
  Arena arena(engine.device(), 0, Arena::Mode::plan), gradients(engine.device(), 0, Arena::Mode::plan);
  Tape tape(gradients);
  GradientsBesideSums beside(tape, sums);
  const Kernels dry = engine.kernels().dry();
  Context cx{.kernels = dry, .exec = engine.exec(), .arena = arena, .precision = recipe.precision()};
  cx.tape = &tape;
  cx.gradient_watch = &beside;
  cx.training = true;
  cx.recompute_layers = recipe.recompute;
  const TrainBatch batch = data.micro_batch(0, 0);
  const BatchLoss loss = loss_of(cx, model, batch, recipe.loss, {});
  tape.backward(cx, loss.loss);
  for (auto& [name, weight] : model.weights()) weight.clear_gradient();
  return {arena.peak(), gradients.peak(), beside.most()};
}

std::vector<Trainer::Alternative> Trainer::alternatives(const Engine& engine, const Recipe& recipe, Model& model,
                                                        const TrainData& data, Comm& comm) {
  // Other divisions are cut from a micro-batch of this one: from one that takes seconds and gigabytes to read, none is.
  constexpr int64_t kMaxTokensToCut = 1 << 24;
  if (recipe.batch_tokens / recipe.micro_batches > kMaxTokensToCut) return {};
  const int64_t now = plan(engine, recipe, model, data, comm).total();
  const auto planned = [&](const Recipe& changed, double share) {
    return plan(engine, changed, model, OtherwiseDivided(data, share), comm).total();
  };
  // The division into micro-batches that needs least. From many down to few: activations double where the sums become
  // one less, so behind the first division that needs more none needs less, and large micro-batches are not even read.
  const auto best_division = [&](Recipe from) {
    std::vector<int64_t> divisions;
    for (int64_t m = comm.size(); m <= recipe.batch_tokens && m <= kMaxMicroBatches; m *= 2) {
      if (divides(recipe, m)) divisions.push_back(m);
    }
    Alternative best{.total = INT64_MAX};
    for (auto m = divisions.rbegin(); m != divisions.rend(); ++m) {
      from.micro_batches = *m;
      const int64_t total = planned(from, static_cast<double>(recipe.micro_batches) / static_cast<double>(*m));
      if (total > best.total) break;
      best = {.change = "micro_batches=" + std::to_string(*m), .total = total};
    }
    return best;
  };
  std::vector<Alternative> all{best_division(recipe)};
  const bool may_recompute = !recipe.recompute && recipe.loss.balance == 0;
  if (may_recompute) {
    Recipe again = recipe;
    again.recompute = true;
    all.push_back({.change = "recompute=true", .total = planned(again, 1)});
    Alternative both = best_division(again);
    both.change += " with recompute=true";
    all.push_back(both);
  }
  if (comm.size() > 1 && recipe.zero == 0) {
    Recipe divided = recipe;
    divided.zero = 1;
    all.push_back({.change = "zero=1", .total = planned(divided, 1)});
  }
  std::erase_if(all, [&](const Alternative& one) { return one.total >= now; });
  return all;
}

}  // namespace qkv
