#include "api/training/train_watch.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/error.h"

namespace qkv {
namespace {

constexpr int64_t kCounted = 500'000;  // tokens behind the frequencies, at most

// The texts of a batch, each cut to so many tokens, until there are enough rows.
void add_texts(std::vector<TokenText>& to, const TrainBatch& batch, int64_t rows, int64_t length) {
  int64_t have = 0;
  for (const TokenText& text : to) have += std::ssize(text.ids);
  size_t at = 0, source_at = 0;
  const auto part = [](const std::vector<int32_t>& all, size_t first, size_t count) {
    const auto begin = all.begin() + static_cast<int64_t>(first);
    return std::vector<int32_t>(begin, begin + static_cast<int64_t>(count));
  };
  for (size_t i = 0; i < batch.lengths.size() && have < rows; ++i) {
    const auto whole = static_cast<size_t>(batch.lengths[i]);
    const size_t kept = std::min(whole, static_cast<size_t>(length));
    TokenText text{.ids = part(batch.ids, at, kept), .targets = part(batch.targets, at, kept)};
    if (!batch.source_lengths.empty()) {
      const auto source = static_cast<size_t>(batch.source_lengths[i]);
      text.source = part(batch.source_ids, source_at, source);
      source_at += source;
    }
    at += whole;
    if (kept < 3) continue;  // rows that early are not looked at
    have += static_cast<int64_t>(kept);
    to.push_back(std::move(text));
  }
}

// `counted`: the training tokens behind the frequencies of the snapshots that are there.
WatchData material_of(const Recipe& recipe, const Model& model, const TrainData& data, std::optional<int64_t> counted) {
  const int64_t rows = watched_rows(recipe.batch_tokens), length = watched_length(recipe.batch_tokens);
  const bool held_out = data.validation_batches() > 0;
  std::vector<TokenText> texts;
  if (held_out) {
    for (int64_t b = 0; b < std::min<int64_t>(data.validation_batches(), 8); ++b) {
      add_texts(texts, data.validation_batch(b), rows, length);
    }
  } else {
    add_texts(texts, data.micro_batch(0, 0), rows, length);
  }
  const bool decoder = model.spec().kind != ModelSpec::Kind::encoder_only;
  std::vector<int32_t> before;
  for (const TokenText& text : texts) before.insert(before.end(), text.ids.begin(), text.ids.end());
  if (!decoder) before.clear();
  TokenCounts counts(model.spec().vocabulary, before);
  // A run that is given more steps counts the same tokens again: their number depends on the data alone.
  const auto all = static_cast<int64_t>(data.train_tokens);
  const int64_t wanted = std::min(counted.value_or(std::min(kCounted, all)), kCounted + recipe.batch_tokens);
  const int64_t steps = counted ? std::numeric_limits<int64_t>::max() : all / recipe.batch_tokens + 1;  // an epoch
  for (int64_t step = 0; counts.counted() < wanted && step < steps; ++step) {
    for (int64_t m = 0; m < recipe.micro_batches; ++m) {
      const TrainBatch batch = data.micro_batch(step, m);
      counts.add(decoder ? batch.ids : std::vector<int32_t>{}, batch.targets);
    }
  }
  counts.finish();
  return {.texts = std::move(texts), .held_out = held_out, .counts = std::move(counts)};
}

std::optional<int64_t> counted_before(const std::filesystem::path& run) {
  if (!WatchFolder::exists(run)) return std::nullopt;
  return WatchFolder::open(run).plan().counted;
}

WatchFolder folder_of(const std::filesystem::path& run, const WatchPlan& plan) {
  return WatchFolder::exists(run) ? WatchFolder::open(run) : WatchFolder::create(run, plan);
}

}  // namespace

TrainWatch::TrainWatch(const std::filesystem::path& run, const Engine& engine, const Recipe& recipe, const Model& model,
                       const TrainData& data)
    : watcher_(model, engine, material_of(recipe, model, data, counted_before(run)),
               {.precision = recipe.precision(),
                .steps = recipe.steps,
                .batch_tokens = recipe.batch_tokens,
                .length = recipe.sequence,
                .seed = recipe.seed}),
      folder_(folder_of(run, watcher_.plan())) {}

void TrainWatch::begin(const TrainCounters& counters) {
  folder_.remove_after(counters.step);
  const std::vector<int64_t> taken = folder_.steps();
  watcher_.resume(folder_.plan(), counters.step, taken.empty() ? 0 : folder_.read(taken.back()).watch_seconds);
  if (watcher_.plan().steps != folder_.plan().steps) folder_.plan_steps(watcher_.plan().steps);
  if (taken.empty() || (watcher_.due(counters.step) && taken.back() != counters.step)) take(counters);
  watcher_.before_step(counters.step);
}

bool TrainWatch::after_step(const StepReport& report, const TrainCounters& counters) {
  watcher_.after_step(report.result.counted);
  const bool due = watcher_.due(counters.step);
  if (due) take(counters);
  watcher_.before_step(counters.step);
  return due;
}

void TrainWatch::take(const TrainCounters& counters) {
  Snapshot snapshot = watcher_.take(counters.step);
  snapshot.train_seconds = counters.seconds;
  if (on_snapshot) on_snapshot(snapshot, watcher_.plan());
  folder_.write(std::move(snapshot));
}

double TrainWatch::share(const TrainCounters& counters) const {
  return counters.seconds > 0 ? watcher_.seconds() / counters.seconds : 0;
}

Json TrainWatch::log_line(const TrainCounters& counters) const {
  return {{"step", counters.step}, {"watch_seconds", watcher_.seconds()}, {"watch_share", share(counters)}};
}

WatchEnd TrainWatch::end(const TrainCounters& counters) const {
  return {.snapshots = folder_.steps().size(), .seconds = watcher_.seconds(), .share = share(counters)};
}

}  // namespace qkv
