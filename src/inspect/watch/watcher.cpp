#include "inspect/watch/watcher.h"

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/permutation.h"
#include "base/philox.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/watch/watched_roles.h"
#include "model/weight_list.h"
#include "ops/ops.h"

namespace qkv {
namespace {

constexpr size_t kTokens = 200;  // whose embeddings are kept
constexpr int64_t kMostSnapshots = 60, kFewestSnapshots = 6;
constexpr int64_t kImportantSteps = 1500;  // in which the importance of heads is measured
constexpr double kBudget = 0.02;           // share of the training time
constexpr double kPassOverStep = 0.5;      // cost of a row in a snapshot (forward only) relative to a row in a step

// Adds its lifetime to a counter.
class Clock {
 public:
  explicit Clock(double& seconds) : seconds_(seconds) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "L0 W_Q"; a cross-attention's is "X0 W_Q".
std::string label_of(const ModelSpec& spec, const WeightSpec& weight) {
  Place place = weight.place;
  if (weight.name.find(".cross.") != std::string::npos) place.stack = Stack::cross;
  std::string last = weight.name.substr(weight.name.rfind('.') + 1);
  if (last.size() == 1) last = std::string("W_") + static_cast<char>(last.front() - 'a' + 'A');
  return name_of(spec, place) + " " + last;
}

constexpr const char* kOtherRun =
    "they are of another run, or batch_tokens or sequence were changed: put those back, or move the folder watch away";

void check_same(const char* what, int64_t there, int64_t here) {
  QKV_CHECK(there == here, "the existing snapshots are of ", there, " ", what, " but this run has ", here,
            Hint(kOtherRun));
}
template <class T>
void check_same(const char* what, const std::vector<T>& there, const std::vector<T>& here) {
  check_same(what, std::ssize(there), std::ssize(here));
  const auto [a, b] = std::mismatch(there.begin(), there.end(), here.begin());
  QKV_CHECK(a == there.end(), "number ", a - there.begin(), " of the ", here.size(), " ", what, " is ", *a,
            " in the existing snapshots but ", *b, " in this run", Hint(kOtherRun));
}

bool is_watched(const WeightSpec& weight) {
  return weight.in_layer && weight.shape.rank() == 2 &&
         (weight.part == Part::query || weight.part == Part::key || weight.part == Part::value ||
          weight.part == Part::key_value || weight.part == Part::out);
}

// One random entry from each of kSketch equal stretches of a matrix; the same at every step.
std::vector<int32_t> entries_of(const Param& weight, uint32_t number) {
  const PhiloxKey key = fold({.seed = 1, .layer = number, .site = 1});
  const auto count = static_cast<double>(weight.shape().count());
  QKV_ASSERT(weight.shape().count() <= INT32_MAX, weight.name(), " is ", weight.shape());
  std::vector<int32_t> entries;
  for (int64_t k = 0; k < Snapshot::kSketch; ++k) {
    const double at =
        static_cast<double>(k) + static_cast<double>(uniform01(random_u32(key, 0, static_cast<uint64_t>(k))));
    entries.push_back(static_cast<int32_t>(std::min(
        weight.shape().count() - 1, static_cast<int64_t>(at / static_cast<double>(Snapshot::kSketch) * count))));
  }
  return entries;
}

// A first token, then L random tokens twice. The most frequent and the rarest tenth of the tokens are not used.
std::vector<TokenText> repeated_texts(const ModelSpec& spec, const TokenCounts& counts, int64_t half, int64_t texts,
                                      uint64_t seed) {
  std::vector<TokenText> made;
  const std::vector<int32_t> known = counts.most_frequent(static_cast<size_t>(spec.vocabulary));
  const size_t cut = known.size() / 10, kept = known.size() - 2 * cut;
  if (half < 2 || kept < 2) return made;
  for (int64_t t = 0; t < texts; ++t) {
    const Permutation order(kept, fold({.seed = seed, .step = static_cast<uint64_t>(t), .site = 3}));
    const auto drawn = [&](size_t i) { return known[cut + order(i % kept)]; };
    TokenText text;
    const TokenIds& ids = spec.tokens;
    const bool has_source = spec.has_source();
    text.ids.push_back(has_source && ids.decoder_start ? *ids.decoder_start
                       : ids.bos                       ? *ids.bos
                       : !ids.eos.empty()              ? ids.eos.front()
                                                       : drawn(static_cast<size_t>(half)));
    for (int64_t i = 0; i < 2 * half; ++i) text.ids.push_back(drawn(static_cast<size_t>(i % half)));
    if (has_source) {
      text.source = text.ids;
      for (int32_t& id : text.source) {
        if (spec.source_vocabulary > 0) id %= static_cast<int32_t>(spec.source_vocabulary);
      }
    }
    made.push_back(std::move(text));
  }
  return made;
}

int64_t rows_of(std::span<const TokenText> texts) {
  int64_t rows = 0;
  for (const TokenText& text : texts) rows += std::ssize(text.ids) + std::ssize(text.source);
  return rows;
}

}  // namespace

int64_t watched_rows(int64_t batch_tokens) {
  return std::clamp<int64_t>(batch_tokens / 6, 32 * Estimate::kFewestTexts, 2048);
}
int64_t watched_length(int64_t batch_tokens) {
  return watched_rows(batch_tokens) / Estimate::kFewestTexts;
}

Watcher::Watcher(const Model& model, const Engine& engine, WatchData data, const WatchOptions& options)
    : model_(model), engine_(engine), data_(std::move(data)), reader_(model, engine, {.precision = options.precision}) {
  const ModelSpec& spec = model.spec();
  const int64_t half = std::min<int64_t>(16, (options.length - 1) / 2);
  synthetic_ = repeated_texts(spec, data_.counts, half, Estimate::kFewestTexts, options.seed);
  for (const HeadId& head : all_heads(spec)) plan_.heads.push_back(name_of(spec, head));
  const auto watch = [&](const std::string& label, const Param& weight) {
    weights_.push_back({&weight, entries_of(weight, static_cast<uint32_t>(weights_.size()))});
    plan_.weights.push_back(label);
  };
  for (const WeightSpec& weight : weight_list(spec)) {
    if (is_watched(weight)) watch(label_of(spec, weight), model.weights().at(weight.name));
  }
  tokens_ = model.weights().find("embed");
  if (tokens_ == nullptr) tokens_ = &model.weights().at("dec.embed");
  watch("E", *tokens_);
  plan_.tokens = data_.counts.most_frequent(kTokens);
  plan_.width = tokens_->shape()[-1];
  plan_.texts = std::ssize(data_.texts);
  plan_.synthetic = std::ssize(synthetic_);
  plan_.repeated = synthetic_.empty() ? 0 : half;
  for (const TokenText& text : data_.texts) plan_.rows += std::ssize(text.ids);
  plan_.held_out = data_.held_out;
  plan_.counted = data_.counts.counted();
  const double of_a_step = kPassOverStep * static_cast<double>(rows_of(data_.texts) + rows_of(synthetic_)) /
                           static_cast<double>(options.batch_tokens);
  const auto affordable = static_cast<int64_t>(kBudget * static_cast<double>(options.steps) / of_a_step);
  plan_.steps = snapshot_steps(options.steps, std::clamp(affordable, kFewestSnapshots, kMostSnapshots));
  every_ = std::max<int64_t>(1, options.steps / kImportantSteps);
  importance_.resize(plan_.heads.size());
  in_step_.resize(plan_.heads.size());
}

bool Watcher::due(int64_t step) const {
  return std::binary_search(plan_.steps.begin(), plan_.steps.end(), step);
}

void Watcher::resume(const WatchPlan& plan, int64_t done, double seconds) {
  check_same("heads", plan.heads, plan_.heads);
  check_same("matrices", plan.weights, plan_.weights);
  check_same("tokens", plan.tokens, plan_.tokens);
  check_same("numbers in an embedding", plan.width, plan_.width);
  check_same("texts", plan.texts, plan_.texts);
  check_same("synthetic texts", plan.synthetic, plan_.synthetic);
  check_same("tokens that are repeated", plan.repeated, plan_.repeated);
  if (!plan.steps.empty() && plan.steps.back() == plan_.steps.back()) {
    plan_.steps = plan.steps;
  } else {
    std::erase_if(plan_.steps, [&](int64_t step) { return step <= done; });
    const auto later = std::upper_bound(plan.steps.begin(), plan.steps.end(), done);
    plan_.steps.insert(plan_.steps.begin(), plan.steps.begin(), later);
  }
  seconds_ += seconds;
}

Ask Watcher::ask(Place, Site site) const {
  return site == Site::attn_z && measures_ ? Ask::importance : Ask::none;
}

void Watcher::visit_importance(Context&, const Tap& tap, const Tensor& z_dz) {
  const Clock clock(seconds_);
  const auto heads = static_cast<size_t>(z_dz.dim(1));
  const std::vector<float> values = host_floats(z_dz.contiguous() ? z_dz.view({z_dz.count()}) : z_dz);
  const std::vector<Segment>& list = tap.rows->list;
  // An example's loss is a mean over its targets, the rows of the decoder, which backward reaches first.
  const bool source = tap.place.stack == Stack::encoder && model_.spec().has_source();
  if (!source) {
    targets_.clear();
    for (const Segment& s : list) targets_.push_back(s.rows);
  }
  const size_t first = first_head(model_.spec(), tap.place);
  std::vector<double> sums(heads);
  for (size_t i = 0; i < list.size() && i < targets_.size(); ++i) {
    if (list[i].rows == 0 || targets_[i] == 0) continue;
    std::fill(sums.begin(), sums.end(), 0.0);
    const auto begin = static_cast<size_t>(list[i].first_row), end = begin + static_cast<size_t>(list[i].rows);
    for (size_t r = begin; r < end; ++r) {
      for (size_t h = 0; h < heads; ++h) sums[h] += static_cast<double>(values[r * heads + h]);
    }
    for (size_t h = 0; h < heads; ++h) {
      const double example = std::abs(sums[h]) / targets_[i];
      Snapshot::Importance& into = in_step_[first + h];
      into.sum += example;
      into.squares += example * example;
      ++into.examples;
    }
  }
}

void Watcher::after_step(int64_t counted_targets) {
  const Clock clock(seconds_);
  const auto divisor = static_cast<double>(counted_targets);  // the loss was divided by it
  for (size_t h = 0; h < importance_.size(); ++h) {
    importance_[h].sum += in_step_[h].sum * divisor;
    importance_[h].squares += in_step_[h].squares * divisor * divisor;
    importance_[h].examples += in_step_[h].examples;
    in_step_[h] = {};
  }
}

std::vector<float> Watcher::picked_rows(const Tensor& x, std::span<const int32_t> rows) const {
  Arena arena(engine_.device());
  Context cx = engine_.context(arena, Precision::f32());
  return host_floats(ops::gather_rows(cx, x, cx.upload(rows)));
}

std::vector<float> Watcher::sketch() const {
  std::vector<float> values;
  values.reserve(weights_.size() * Snapshot::kSketch);
  for (const Watched& watched : weights_) {
    const Tensor master = watched.weight->master();
    QKV_ASSERT(master.dtype() == DType::f32, watched.weight->name(), " is ", master);
    const std::vector<float> some = picked_rows(master.view({master.count(), 1}), watched.entries);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

std::vector<float> Watcher::embeddings() const {
  return picked_rows(tokens_->master(), plan_.tokens);
}

void Watcher::before_step(int64_t step) {
  measures_ = step % every_ == 0 || due(step + 1);
  if (!due(step + 1)) return;
  const Clock clock(seconds_);
  before_ = sketch();
}

Snapshot Watcher::take(int64_t step) {
  Snapshot s{.step = step};
  {
    const Clock clock(seconds_);
    measure_roles(reader_, data_.texts, synthetic_, data_.counts, s);
    s.sketches = sketch();
    s.update.assign(weights_.size(), 0);
    for (size_t w = 0; w < weights_.size() && !before_.empty(); ++w) {
      double change = 0, size = 0;
      for (size_t k = w * Snapshot::kSketch; k < (w + 1) * Snapshot::kSketch; ++k) {
        const auto now = static_cast<double>(s.sketches[k]), then = static_cast<double>(before_[k]);
        change += (now - then) * (now - then);
        size += now * now;
      }
      s.update[w] = size > 0 ? static_cast<float>(std::sqrt(change / size)) : 0;
    }
    before_.clear();
    s.embedding = embeddings();
    s.importance = std::exchange(importance_, std::vector<Snapshot::Importance>(plan_.heads.size()));
  }
  s.watch_seconds = seconds_;
  return s;
}

}  // namespace qkv
