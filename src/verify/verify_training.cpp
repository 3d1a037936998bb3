#include "verify/verify_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/path.h"
#include "core/host_values.h"
#include "io/safetensors.h"
#include "io/stored_type.h"
#include "train/step.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

using Verdict = VerifyLine::Verdict;
using Tensors = std::map<std::string, std::vector<float>>;

// Hyperparameters of the recordings, and the bounds.
constexpr double kClip = 1, kPeak = 1e-3, kSmoothing = 0.1, kBalance = 0.02;
constexpr int64_t kWarmup = 5;
constexpr OptimizerSpec kRule{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1};
constexpr double kLossBound = 1e-5, kGradientBound = 1e-9, kFinalBound = 1e-8, kFloor = 1e-4;
// Between two trainings in double. And how far rounding may take a recording in float from one: more is a mistake.
constexpr double kDoubleBound = 1e-9, kRecordingBound = 1e-4;
// A key bias shifts all scores of a row equally, so its true gradient is zero and the recorded one is rounding (up to
// 1e-7 of the gradients' rms, so exactly zero would miss the bound). Ours must be as small.
constexpr double kZeroBound = 1e-6;
bool is_key_bias(const std::string& name) {
  return name.ends_with("k_proj.bias");
}

// Weights as the tensors of a Hugging Face folder.
Tensors as_stored(const Weights& weights, const TensorNames& names) {
  Tensors all;
  for (const OutgoingTensor& tensor :
       outgoing_tensors(weights, names, [](const NamedTensor&, const std::string&) { return std::string("F32"); })) {
    std::vector<float>& values = all[tensor.name];
    tensor.give([&](std::span<const std::byte> piece) {
      const size_t at = values.size();
      values.resize(at + piece.size() / sizeof(float));
      std::copy(piece.begin(), piece.end(), reinterpret_cast<std::byte*>(values.data() + at));
    });
  }
  return all;
}

struct StepNumbers {
  std::vector<double> losses, norms, balances;
};

double relative_difference(double got, double right) {
  return got == right ? 0 : std::abs(got - right) / std::abs(right);
}

// Infinite for lists of unequal length and where a number is not finite.
double worst_difference(const std::vector<double>& got, const std::vector<double>& right) {
  double worst = right.size() == got.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(got.size(), right.size()); ++i) {
    const double off = relative_difference(got[i], right[i]);
    worst = std::isfinite(off) ? std::max(worst, off) : INFINITY;
  }
  return worst;
}

// Masters in f64, so that the optimiser's tensors and its arithmetic are in f64 too.
void widen(Weights& weights) {
  for (auto& [name, weight] : weights) {
    const std::vector<float> values = host_floats(weight.master());
    const std::vector<double> wide(values.begin(), values.end());
    Param fresh(name, weight.device(), DType::f64, weight.shape());
    fresh.trainable = weight.trainable;
    weight.device().upload(fresh.master().data(), wide.data(), static_cast<int64_t>(wide.size() * sizeof(double)));
    weight = std::move(fresh);
  }
}

class Replay {
 public:
  Replay(const Checkpoint& checkpoint, const Engine& engine, const Safetensors& recorded,
         Precision precision = Precision::f32())
      : checkpoint_(checkpoint),
        engine_(engine),
        recorded_(recorded),
        precision_(precision),
        model_(checkpoint.model(engine.device())) {
    const auto trained = [&](const std::string& weight) {
      for (const NamedTensor& tensor : checkpoint.names->tensors()) {
        const auto part = [&](const NamedPart& p) { return p.weight == weight; };
        if (std::any_of(tensor.parts.begin(), tensor.parts.end(), part)) {
          return recorded.find("final." + tensor.name) != nullptr;
        }
      }
      return false;
    };
    for (auto& [name, weight] : model_->weights()) weight.trainable = trained(name);
    if (precision.exact == DType::f64) widen(model_->weights());
  }

  StepNumbers train() {
    const int64_t steps = recorded_.at("tokens").shape.at(0);
    Optimizer optimizer(model_->spec(), model_->weights(), kRule);
    Arena arena(engine_.device()), gradients(engine_.device());
    StepNumbers seen;
    for (int64_t s = 0; s < steps; ++s) {
      StepOptions options{
          .loss = {.smoothing = model_->spec().has_source() ? kSmoothing : 0, .balance = has_experts() ? kBalance : 0},
          .lr = kPeak * std::min(1.0, static_cast<double>(s + 1) / kWarmup),
          .clip = kClip,
          .step = static_cast<uint64_t>(s)};
      options.precision = precision_;
      if (s == 0) options.before_update = [&](Context&) { first_ = gradients_now(); };
      const TrainBatch batch = batch_of(s);
      const StepResult result = train_step(engine_, arena, gradients, *model_, optimizer, {&batch, 1}, options);
      seen.losses.push_back(result.loss);
      seen.norms.push_back(result.grad_norm);
      seen.balances.push_back(result.balance);
    }
    return seen;
  }

  void compare(VerifyReport& report, const StepNumbers& seen) {
    compare_numbers(report, "loss", seen.losses);
    compare_numbers(report, "grad_norm", seen.norms);
    const bool same_losses = report.lines[report.lines.size() - 2].verdict == Verdict::good;
    if (same_losses && report.lines.back().verdict == Verdict::bad) {
      allow_recording_error(report.lines.back(), seen.norms);
    }
    if (has_experts()) compare_numbers(report, "aux", seen.balances);
    compare_gradients(report, seen.norms.front());
    compare_weights(report);
    if (recorded_.find("f64.loss") != nullptr) compare_doubles(report);
  }

 private:
  bool has_experts() const { return model_->spec().decoder.layers.front().feed.experts.has_value(); }

  TrainBatch batch_of(int64_t step) const {
    const StoredTensor& tokens = recorded_.at("tokens");
    const int64_t batch = tokens.shape.at(1), length = tokens.shape.at(2);
    const std::vector<int32_t> ids = recorded_ids(tokens);
    TrainBatch made;
    for (int64_t b = 0; b < batch; ++b) {
      const int32_t* row = ids.data() + (step * batch + b) * length;
      made.ids.insert(made.ids.end(), row, row + length - 1);
      made.targets.insert(made.targets.end(), row + 1, row + length);
      made.lengths.push_back(static_cast<int32_t>(length - 1));
    }
    made.counted = static_cast<int64_t>(made.targets.size());
    if (const StoredTensor* source = recorded_.find("source")) {
      const std::vector<int32_t> all = recorded_ids(*source);
      const int64_t words = source->shape.at(2);
      const auto first = all.begin() + step * batch * words;
      made.source_ids.assign(first, first + batch * words);
      made.source_lengths.assign(static_cast<size_t>(batch), static_cast<int32_t>(words));
    }
    return made;
  }

  // The gradients under the names of the weights.
  Tensors gradients_now() const {
    Weights shown;
    for (const auto& [name, weight] : model_->weights()) {
      Param& made = shown.add(Param(name, weight.device(), DType::f32, weight.shape()));
      std::vector<float> values(static_cast<size_t>(weight.shape().count()), 0.0F);
      if (weight.gradient().defined()) values = host_floats(weight.gradient());
      weight.device().upload(made.master().data(), values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
    }
    return as_stored(shown, *checkpoint_.names);
  }

  // One number per step, recorded as NAME [steps] or NAME.0, NAME.1, ...
  std::vector<double> recorded_numbers(const std::string& name) const {
    if (const StoredTensor* all = recorded_.find(name)) return recorded_doubles(*all);
    std::vector<double> values;
    while (const StoredTensor* one = recorded_.find(name + "." + std::to_string(values.size()))) {
      values.push_back(recorded_doubles(*one).at(0));
    }
    return values;
  }

  void compare_numbers(VerifyReport& report, const std::string& name, const std::vector<double>& got,
                       double bound = kLossBound) const {
    const std::vector<double> right = recorded_numbers(name);
    const double worst = worst_difference(got, right);
    report.lines.push_back({.verdict = worst <= bound ? Verdict::good : Verdict::bad,
                            .name = "train " + name,
                            .shape = fmt::format("[{}]", right.size()),
                            .note = fmt::format("worst relative difference {:.1e}", worst)});
  }

  // The same training in double.
  const StepNumbers& exact() {
    if (!exact_) exact_ = Replay(checkpoint_, engine_, recorded_, Precision::f64()).train();
    return *exact_;
  }

  // A recording that was made in double too.
  void compare_doubles(VerifyReport& report) {
    compare_numbers(report, "f64.loss", exact().losses, kDoubleBound);
    compare_numbers(report, "f64.grad_norm", exact().norms, kDoubleBound);
  }

  // The recording has rounding errors of its own: a gradient norm may be as far away as the recording is from the same
  // training in double, and kLossBound more.
  void allow_recording_error(VerifyLine& line, const std::vector<double>& got) {
    const std::vector<double> right = recorded_numbers("grad_norm");
    const double farthest = worst_difference(right, exact().norms);
    if (right.size() != got.size() || !(farthest <= kRecordingBound)) {
      line.note += fmt::format(
          "; the recording is up to {:.1e} away from the same training in double, and at most "
          "{:.0e} is allowed for rounding",
          farthest, kRecordingBound);
      return;
    }
    bool within = true;
    for (size_t i = 0; i < got.size(); ++i) {
      const double recording = relative_difference(right[i], exact().norms[i]);
      within = within && relative_difference(got[i], right[i]) <= recording + kLossBound;
    }
    line.note +=
        fmt::format("; allowed: the recording is up to {:.1e} away from the same training in double, and {:.0e}",
                    farthest, kLossBound);
    if (within) line.verdict = Verdict::good;
  }

  void compare_gradients(VerifyReport& report, double norm) {
    const double factor = ops::clip_factor(norm, kClip);
    double squares = 0, count = 0;
    for (const StoredTensor& entry : recorded_.entries()) {
      if (!entry.name.starts_with("grad_after_clip.")) continue;
      for (const float g : recorded_floats(entry)) {
        squares += static_cast<double>(g) * static_cast<double>(g);
        count += 1;
      }
    }
    const double floor = kFloor * kFloor * squares / std::max(count, 1.0);
    double worst = 0;
    std::string where = "none";
    int64_t tensors = 0;
    for (const StoredTensor& entry : recorded_.entries()) {
      constexpr std::string_view kPrefix = "grad_after_clip.";
      if (!entry.name.starts_with(kPrefix)) continue;
      ++tensors;
      std::vector<float> right = recorded_floats(entry);
      const std::vector<float>& got = first_[entry.name.substr(kPrefix.size())];
      const bool is_zero = is_key_bias(entry.name);
      if (is_zero) std::fill(right.begin(), right.end(), 0.0F);
      double wrong = got.size() == right.size() ? 0 : INFINITY, power = 0;
      for (size_t i = 0; i < std::min(got.size(), right.size()); ++i) {
        const double off = static_cast<double>(got[i]) * factor - static_cast<double>(right[i]);
        wrong += off * off;
        power += static_cast<double>(right[i]) * static_cast<double>(right[i]);
      }
      const double scale = std::max(power, floor * static_cast<double>(right.size()));
      const double nmse =
          is_zero ? wrong / scale * kGradientBound * (kFloor * kFloor) / (kZeroBound * kZeroBound) : wrong / scale;
      if (nmse < worst || std::isnan(worst)) continue;
      worst = nmse;
      where = entry.name.substr(kPrefix.size());
    }
    report.lines.push_back({.verdict = tensors > 0 && worst <= kGradientBound ? Verdict::good : Verdict::bad,
                            .name = "train gradients",
                            .shape = fmt::format("{} tensors", tensors),
                            .nmse = worst,
                            .note = "of the first step, worst: " + where});
  }

  // One error over all tensors. Key biases are left out: their true gradient is zero, so Adam amplifies rounding.
  void compare_weights(VerifyReport& report) const {
    const Tensors now = as_stored(model_->weights(), *checkpoint_.names);
    double wrong = 0, power = 0;
    int64_t tensors = 0;
    for (const StoredTensor& entry : recorded_.entries()) {
      constexpr std::string_view kPrefix = "final.";
      if (!entry.name.starts_with(kPrefix) || is_key_bias(entry.name)) continue;
      const std::string name = entry.name.substr(kPrefix.size());
      const auto got = now.find(name);
      const std::vector<float> right = recorded_floats(entry);
      if (got == now.end() || got->second.size() != right.size()) wrong = INFINITY;
      const bool fused = name.ends_with("attn.c_attn.bias");  // GPT-2: q, k and v in one
      for (size_t i = 0; i < right.size() && wrong < INFINITY; ++i) {
        if (fused && i / (right.size() / 3) == 1) continue;
        const double off = static_cast<double>(got->second[i]) - static_cast<double>(right[i]);
        wrong += off * off;
        power += static_cast<double>(right[i]) * static_cast<double>(right[i]);
      }
      ++tensors;
    }
    report.lines.push_back({.verdict = tensors > 0 && wrong <= kFinalBound * power ? Verdict::good : Verdict::bad,
                            .name = "train final weights",
                            .shape = fmt::format("{} tensors", tensors),
                            .nmse = wrong / power,
                            .note = "over all tensors, key biases left out"});
  }

  const Checkpoint& checkpoint_;
  const Engine& engine_;
  const Safetensors& recorded_;
  Precision precision_;
  std::unique_ptr<Model> model_;
  Tensors first_;  // gradients of the first step, before the clip
  std::optional<StepNumbers> exact_;
};

}  // namespace

void verify_training(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine,
                     const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "train.safetensors";
  if (!is_there(file)) return;
  const Safetensors recorded = Safetensors::open(file);
  Replay replay(checkpoint, engine, recorded);
  replay.compare(report, replay.train());
}

}  // namespace qkv
