#include "train/step.h"

#include <bit>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "core/gradient_watch.h"
#include "core/host_values.h"

namespace qkv {
namespace {

// Adds the time since the last call.
class Stopwatch {
 public:
  void add_to(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Loss and balance of each micro-batch, on the device until all are done.
class LossList {
 public:
  LossList(Device& device, DType dtype, size_t micro_batches)
      : numbers_(device, dtype, 2 * static_cast<int64_t>(micro_batches)) {}
  void keep(Context& cx, size_t micro_batch, const BatchLoss& loss) const {
    const auto at = 2 * static_cast<int64_t>(micro_batch);
    const Tensor all(numbers_, shape()), balance = all.slice(0, at + 1, 1);
    cx.kernels.copy(cx.exec, {.y = all.slice(0, at, 1), .x = loss.loss});
    if (loss.balance.defined()) {
      cx.kernels.copy(cx.exec, {.y = balance, .x = loss.balance});
    } else {
      cx.kernels.fill(cx.exec, {.y = balance, .value = 0});
    }
  }
  std::vector<double> read() const {
    if (numbers_.format().dtype == DType::f64) {
      std::vector<double> all(static_cast<size_t>(shape()[0]));
      numbers_.device().download(all.data(), numbers_.data(), numbers_.bytes());
      return all;
    }
    const std::vector<float> all = host_floats(Tensor(numbers_, shape()));
    return {all.begin(), all.end()};
  }

 private:
  Shape shape() const { return {numbers_.bytes() / size_of(numbers_.format().dtype)}; }
  Storage numbers_;
};

// Gives the tree each gradient as soon as backward has completed it.
class IntoTree final : public GradientWatch {
 public:
  IntoTree(const Tape& tape, GradientTree& tree) : GradientWatch(tape), tree_(tree) {}
  double seconds = 0;  // in the tree

 private:
  void begun(const Param&) override {}
  void complete(Context& cx, const Param& weight) override {
    Stopwatch watch;
    tree_.add(cx, weight);
    watch.add_to(seconds);
  }
  GradientTree& tree_;
};

}  // namespace

StepSeconds& StepSeconds::operator+=(const StepSeconds& o) {
  forward += o.forward;
  backward += o.backward;
  gradients += o.gradients;
  norm += o.norm;
  update += o.update;
  return *this;
}

GradientTree::GradientTree(std::vector<Param*> weights) {
  for (Param* weight : weights) {
    index_[weight] = sums_.size();
    sums_.push_back({.weight = weight});
  }
}

void GradientTree::add(Context& cx, const Param& weight) {
  add(cx, sums_[index_.at(&weight)]);
}

void GradientTree::add(Context& cx, Sums& sums) {
  QKV_ASSERT(sums.added == micro_batches_, "the gradient of '", sums.weight->name(), "' was added twice to one sum");
  const Shape& shape = sums.weight->shape();
  Storage carry = sums.weight->take_gradient();
  size_t level = 0;
  for (; (sums.added >> level & 1) != 0; ++level) {
    Storage earlier = std::move(sums.levels[level]);
    if (!carry.defined()) {
      carry = std::move(earlier);
    } else if (earlier.defined()) {
      const Tensor sum(earlier, shape);
      cx.kernels.add(cx.exec, {.y = sum, .a = sum, .b = Tensor(carry, shape)});
      carry = std::move(earlier);
    }
  }
  if (level == sums.levels.size()) sums.levels.emplace_back();
  sums.levels[level] = std::move(carry);
  ++sums.added;
}

void GradientTree::end_micro_batch(Context& cx) {
  for (Sums& sums : sums_) {
    if (sums.added == micro_batches_) add(cx, sums);
    QKV_ASSERT(!sums.weight->gradient().defined(), "the gradient of '", sums.weight->name(),
               "' was added to after it was taken for complete");
  }
  ++micro_batches_;
}

void GradientTree::finish() {
  QKV_ASSERT(std::has_single_bit(micro_batches_), "the number of micro-batches is not a power of two");
  for (Sums& sums : sums_) {
    Storage& sum = sums.levels.back();
    if (sum.defined()) sums.weight->put_gradient(std::move(sum));
  }
  sums_.clear();
}

int64_t GradientTree::most_sums(int64_t micro_batches) {
  return std::max(std::countr_zero(static_cast<uint64_t>(micro_batches)), 1);
}

StepResult train_step(const Engine& engine, Arena& arena, Arena& gradients, const Model& model, Optimizer& optimizer,
                      std::span<const TrainBatch> micro_batches, const StepOptions& options) {
  QKV_CHECK(std::has_single_bit(micro_batches.size()), "a step of ", micro_batches.size(), " micro-batches",
            Hint("their number is a power of two, so that ranks can divide them"));
  const std::vector<Param*> weights = optimizer.trainable();
  const DataParallel& data_parallel = optimizer.data_parallel();
  StepResult result;
  std::vector<double> sizes{0, 0};
  for (const TrainBatch& batch : micro_batches) {
    sizes[0] += static_cast<double>(batch.counted);
    sizes[1] += static_cast<double>(batch.ids.size());
  }
  sizes = data_parallel.all_gather_numbers(sizes);
  for (size_t r = 0; r < sizes.size(); r += 2) {
    result.counted += static_cast<int64_t>(sizes[r]);
    result.tokens += static_cast<int64_t>(sizes[r + 1]);
  }
  const double all_batches = static_cast<double>(micro_batches.size()) * data_parallel.comm().size();
  QKV_CHECK(result.counted > 0, "a step of ", result.tokens, " tokens has nothing to predict",
            Hint("every target is ignored: the texts are too short, or the answers empty"));

  GradientTree tree(weights);
  const LossList found(engine.device(), options.precision.exact, micro_batches.size());
  const auto context = [&] {
    arena.rewind({});
    Context cx = engine.context(arena, options.precision);
    cx.rng = {.seed = options.seed, .step = options.step};
    return cx;
  };
  Stopwatch watch;
  for (const TrainBatch& batch : micro_batches) {
    gradients.rewind({});
    Tape tape(gradients);
    Context cx = context();
    cx.tape = &tape;
    cx.probe = options.probe;
    cx.training = true;
    cx.recompute_layers = options.recompute;
    IntoTree into_tree(tape, tree);
    if (micro_batches.size() > 1) cx.gradient_watch = &into_tree;
    const BatchLoss loss = loss_of(cx, model, batch, options.loss,
                                   {.divisor = static_cast<double>(result.counted), .share = 1 / all_batches});
    watch.add_to(result.seconds.forward);
    tape.backward(cx, loss.loss);
    watch.add_to(result.seconds.backward);
    result.seconds.backward -= into_tree.seconds;
    result.seconds.gradients += into_tree.seconds;
    found.keep(cx, static_cast<size_t>(&batch - micro_batches.data()), loss);
    if (micro_batches.size() > 1) tree.end_micro_batch(cx);
    watch.add_to(result.seconds.gradients);
  }
  Context cx = context();
  if (micro_batches.size() > 1) tree.finish();
  data_parallel.sum_gradients(cx);
  if (options.before_update) options.before_update(cx);
  watch.add_to(result.seconds.gradients);
  // Runs forward again with every op checked: the first one that produces a NaN throws.
  const auto find_nan = [&] {
    for (const TrainBatch& batch : micro_batches) {
      Context watched = context();
      watched.training = watched.guard_finite = true;
      loss_of(watched, model, batch, options.loss, {});
    }
  };
  // The device works on while the host prepares the update; here they meet.
  const ops::SquareNorms squares = data_parallel.squares(cx);
  const auto factor = [&] {
    if (options.while_waiting) options.while_waiting();
    std::vector<double> losses = found.read();  // loss and balance of each micro-batch
    for (size_t i = 1; i < losses.size(); i += 2) losses[i] /= all_batches;
    losses = data_parallel.all_gather_numbers(losses);
    for (size_t i = 0; i < losses.size(); i += 2) {
      result.loss += losses[i];
      result.balance += losses[i + 1];
    }
    if (!std::isfinite(result.loss)) {
      find_nan();
      QKV_FAIL("the loss of step ", options.step, " is ", result.loss,
               Hint("the step is refused: lower the learning rate, or look at the data"));
    }
    try {
      result.grad_norm = data_parallel.gradient_norm(squares);
    } catch (const Error&) {
      find_nan();
      throw;
    }
    watch.add_to(result.seconds.norm);
    return options.clip > 0 ? ops::clip_factor(result.grad_norm, options.clip) : 1;
  };
  optimizer.step(cx, options.lr, factor);
  for (Param* weight : weights) weight->clear_gradient();
  watch.add_to(result.seconds.update);
  return result;
}

}  // namespace qkv
