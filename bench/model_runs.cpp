#include "model_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "bed.h"
#include "infer/scheduler.h"

namespace qkv::bench {
namespace {

using On = Limits::On;

constexpr double kPause = 0.5;  // seconds of work between two readings of the limits

double median_share(const std::vector<double>& seconds, const std::vector<double>& limit, double amount) {
  std::vector<double> shares;
  for (size_t i = 0; i < seconds.size(); ++i) shares.push_back(amount / seconds[i] / limit[i]);
  return median_of(shares);
}

std::vector<int32_t> random_ids(int64_t count, int64_t vocabulary, uint64_t seed) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(
        static_cast<int32_t>(random_bits(seed, static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocabulary)));
  }
  return ids;
}

// The matmul peak: the fastest instructions of this CPU for such products.
Limit peak_of(const Limits& limits, bool integers, DType compute) {
  std::vector<Limit> ways{Limit::f32_avx512, Limit::f32_avx2, Limit::f32_plain};
  if (integers) ways.insert(ways.begin(), {Limit::int8_amx, Limit::int8_avx512});
  if (limits.usable(Limit::bf16_gpu)) return compute == DType::bf16 || integers ? Limit::bf16_gpu : Limit::f32_gpu;
  if (!integers && compute == DType::bf16) ways.insert(ways.begin(), {Limit::bf16_amx, Limit::bf16_avx512});
  return *std::find_if(ways.begin(), ways.end(), [&](Limit way) { return limits.usable(way); });
}

// Times one run, and reads the limits in between.
class Stopwatch {
 public:
  Stopwatch(Limits& limits, Limit peak) : limits_(limits), peak_(peak) { look(); }

  template <class F>
  void time(const F& f) {
    if (since_ >= kPause) look();
    const double seconds = seconds_of(f);
    seconds_ += seconds;
    since_ += seconds;
  }
  double seconds() const { return seconds_; }
  void add_to(RunRow& row) {
    look();
    row.seconds.push_back(seconds_);
    row.read.push_back(median_of(read_));
    row.peak.push_back(median_of(peaks_));
  }

 private:
  void look() {
    read_.push_back(limits_.read(limits_.memory(), On::all));
    peaks_.push_back(limits_.read(peak_, On::all));
    since_ = 0;
  }

  Limits& limits_;
  Limit peak_;
  std::vector<double> read_, peaks_;
  double seconds_ = 0, since_ = 0;
};

void add_kernels(RunRow& row) {
  for (const KernelTime& time : take_kernel_times()) {
    const auto at =
        std::find_if(row.kernels.begin(), row.kernels.end(), [&](const auto& k) { return k.name == time.name; });
    KernelTime& sum = at != row.kernels.end() ? *at : row.kernels.emplace_back(KernelTime{.name = time.name});
    sum.seconds += time.seconds;
    sum.calls += time.calls;
  }
}

// One pass over prompts from an empty context; the logits of the last token of each.
void prefill(Runner& runner, const std::vector<int32_t>& ids, int64_t prompts, Stopwatch& watch) {
  std::vector<Runner::Part> parts;
  for (int64_t i = 0; i < prompts; ++i) {
    parts.push_back({.sequence = runner.start(), .ids = ids, .reach = static_cast<int64_t>(ids.size())});
  }
  watch.time([&] { runner.pass(parts); });
  for (const Runner::Part& part : parts) runner.end(part.sequence);
}

// Decodes `batch` sessions together, each from one token, greedily, ignoring the end of text.
void decode(Runner& runner, int64_t batch, int64_t tokens, Stopwatch& watch) {
  Scheduler scheduler(runner, {.most_active = batch, .most_waiting = batch, .most_kept = 0});
  for (const int32_t first : random_ids(batch, runner.vocabulary(), 2)) {
    Request request{.options = {.prompt = {first}, .max_new = tokens, .eos = std::vector<int32_t>{}}};
    request.options.sampling.temperature = 0;
    request.on_end = [](const Session& session) {
      QKV_ASSERT(session.ended() == Ended::length, "a text ended with ", name_of(session.ended()), " after ",
                 session.written(), " tokens: ", session.error());
    };
    scheduler.submit(std::move(request));
  }
  for (int64_t step = 0; step < tokens; ++step) watch.time([&] { scheduler.step(); });
}

}  // namespace

double RunRow::tokens_best() const {
  return number(tokens) / *std::min_element(seconds.begin(), seconds.end());
}
double RunRow::tokens_median() const {
  return number(tokens) / median_of(seconds);
}
double RunRow::share_of_read() const {
  return median_share(seconds, read, cost.bytes);
}
double RunRow::share_of_peak() const {
  return median_share(seconds, peak, cost.operations);
}
double RunRow::total_seconds() const {
  if (timed_seconds > 0) return timed_seconds;
  double total = 0;
  for (const double s : seconds) total += s;
  return total;
}

ModelRuns measure_runs(Runner& runner, Limits& limits, const RunsWanted& wanted, const Told& told) {
  const PassCost cost(runner.model(), runner.options());
  struct Kind {
    RunRow row;
    std::function<void(Stopwatch&)> run;
  };
  std::vector<Kind> kinds;
  if (wanted.prompt > 0) {
    const double prompts = number(wanted.prompts);
    Cost all = cost.weights(wanted.prompts * wanted.prompt, wanted.prompts);
    for (int64_t keys = 1; keys <= wanted.prompt; ++keys)
      all = all + Cost{.operations = prompts * cost.attention(keys).operations};
    all.bytes += prompts * cost.attention(wanted.prompt).bytes;
    const std::string name =
        fmt::format("pp{}{}", wanted.prompt, wanted.prompts == 1 ? "" : fmt::format(" x {}", wanted.prompts));
    kinds.push_back({{.name = name, .tokens = wanted.prompts * wanted.prompt, .cost = all},
                     [&, ids = random_ids(wanted.prompt, runner.vocabulary(), 1)](Stopwatch& watch) {
                       prefill(runner, ids, wanted.prompts, watch);
                     }});
  }
  for (const int64_t batch : wanted.tokens > 0 ? wanted.batches : std::vector<int64_t>{}) {
    Cost all;
    for (int64_t keys = 1; keys <= wanted.tokens; ++keys) {
      const Cost row = cost.attention(keys);
      all = all + cost.weights(batch, batch) + Cost{number(batch) * row.bytes, number(batch) * row.operations};
    }
    const std::string name = fmt::format("tg{}{}", wanted.tokens, batch == 1 ? "" : fmt::format(" x {}", batch));
    kinds.push_back({{.name = name, .tokens = batch * wanted.tokens, .cost = all},
                     [&, batch](Stopwatch& watch) { decode(runner, batch, wanted.tokens, watch); }});
  }

  // Not measured: the first pass reads the weights from disk and converts them.
  told("warming up", 0, 0);
  ModelRuns result;
  result.peak = peak_of(limits, cost.integers(), runner.options().precision.compute);
  Stopwatch unused(limits, result.peak);
  const bool queues = limits.of() == Limits::Of::gpu;  // then kernels are timed in a round of their own
  time_kernels(!queues);
  prefill(runner, random_ids(std::max<int64_t>(wanted.prompt, 1), runner.vocabulary(), 1), wanted.prompts, unused);
  decode(runner, 1, 1, unused);

  const int64_t rounds = wanted.rounds + (queues ? 1 : 0), of = rounds * static_cast<int64_t>(kinds.size());
  int64_t done = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const bool timing = !queues || round == wanted.rounds;
    time_kernels(timing);
    for (Kind& kind : kinds) {
      told(kind.row.name, done++, of);
      take_kernel_times();
      Stopwatch watch(limits, result.peak);
      kind.run(watch);
      if (round < wanted.rounds) watch.add_to(kind.row);
      if (timing) add_kernels(kind.row);
      if (timing && queues) kind.row.timed_seconds = watch.seconds();
    }
  }
  told("done", done, of);
  for (Kind& kind : kinds) {
    std::sort(kind.row.kernels.begin(), kind.row.kernels.end(),
              [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    result.rows.push_back(std::move(kind.row));
  }
  return result;
}

}  // namespace qkv::bench
