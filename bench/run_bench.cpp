// ./qkv bench run MODEL: speed of prefill and decode, as a share of this machine's limits.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "command.h"
#include "kernels/tables.h"
#include "measure.h"
#include "model/checkpoint/checkpoint.h"
#include "model_runs.h"
#include "random_model.h"
#include "torch_peer.h"

namespace qkv::bench {
namespace {

constexpr double kGiB = 1 << 30;

constexpr const char* kExamples = R"(Examples:
  ./qkv new --preset tinyllama-1.1b --seed 1 --dtype bf16 --out tiny && ./qkv bench run tiny
  ./qkv bench run model.gguf --threads 1 --json
  ./qkv bench run tiny --pp 0 --tg 32 --batch 1,4,16,64
  ./qkv bench run --preset llama3-8b --device cuda --batch 1,32

pp (prefill): one pass over so many random tokens from an empty context, with the last token's logits; x N: of N
prompts in one pass. tg (decode): so
many tokens generated one by one from an empty context, greedily, ignoring the end of text; x N: by N sessions in the
same passes, counted together. After one uncounted pass the rounds alternate; best and median of the rounds.

A share is relative to the limits read during the same run, median of the rounds. Bytes: every weight once per pass, in
its compute format (of experts, the part that evenly routed rows use), and the keys and values each row sees.
Operations: two per weight and row, and two per element of the keys and values a head sees.

Exit codes: 0 done, 2 the request is wrong, 3 a fault of qkv itself.)";

struct Wanted {
  std::string model, preset, dtype, cache = "bf16", device = "cpu", peer;
  int threads = 0;
  bool json = false;
  RunsWanted runs;
};

struct Facts {
  std::string device, kernels, model, dtype, cache;
  double preempted = 0;  // preemptions per second
  MemoryNeed need;
  double peak_memory = 0;  // bytes of the host's, without the buffer of the read limit
};

// The most common format of the matrices.
std::string format_of(const Model& model) {
  std::map<std::string, int64_t> numbers;
  for (const auto& [name, weight] : model.weights())
    numbers[fmt::to_string(fmt::streamed(weight.format()))] += weight.shape().count();
  const auto most = std::max_element(numbers.begin(), numbers.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first;
}

void print(const Facts& facts, const Limits& limits, const ModelRuns& runs, const Json& peer) {
  const LimitText &peak = text_of(runs.peak), &read = text_of(limits.memory());
  std::cout << fmt::format("{}, {} thread{}, kernels {}\n{}, compute {}, KV cache {}\n\n", facts.device,
                           limits.threads(), limits.threads() == 1 ? "" : "s", facts.kernels, facts.model, facts.dtype,
                           facts.cache);
  for (const Limit limit : {limits.memory(), runs.peak}) {
    const std::vector<double>& readings = limits.readings(limit, Limits::On::all);
    std::cout << fmt::format("{:<24} {:6.2f} {} at best, median {:.2f}\n", text_of(limit).name,
                             best_of(readings) / text_of(limit).scale, text_of(limit).unit,
                             median_of(readings) / text_of(limit).scale);
  }
  std::cout << fmt::format("\n{:<12}{:>10}{:>10}  {:<10}{:>8}{:>8}{:>10}{:>8}\n", "", "best", "median", "", read.unit,
                           "share", peak.unit, "share");
  for (const RunRow& row : runs.rows) {
    const double best = *std::min_element(row.seconds.begin(), row.seconds.end());
    std::cout << fmt::format("{:<12}{:>10.1f}{:>10.1f}  {:<10}{:>8.1f}{:>7.0f}%{:>10.3f}{:>7.0f}%\n", row.name,
                             row.tokens_best(), row.tokens_median(), "tokens/s", row.cost.bytes / best / read.scale,
                             100 * row.share_of_read(), row.cost.operations / best / peak.scale,
                             100 * row.share_of_peak());
  }
  for (const auto& [key, name] : {std::pair{"rows", "written by hand"}, std::pair{"transformers", "transformers"}}) {
    if (!peer.contains(key)) continue;
    for (const Json& row : peer[key]) {
      std::cout << fmt::format("{}, {}, compiled, static cache, batch {}: {:.1f} tokens/s\n",
                               peer["peer"].get<std::string>(), name, row["batch"].get<int64_t>(),
                               row["tokens_per_second"].get<double>());
    }
  }
  std::cout << "\ntime per kernel\n";
  for (const RunRow& row : runs.rows) {
    constexpr double kWorthNaming = 0.002;
    double rest = row.total_seconds();
    std::string line;
    for (const KernelTime& kernel : row.kernels) {
      const double share = kernel.seconds / row.total_seconds();
      if (share < kWorthNaming) continue;
      rest -= kernel.seconds;
      line += fmt::format("{} {:.1f}, ", kernel.name, 100 * share);
    }
    std::cout << fmt::format("  {:<12}{}other {:.1f} %\n", row.name, line, 100 * rest / row.total_seconds());
  }
  std::cout << fmt::format("\npeak memory{} {:.2f} GiB; estimated: weights {:.2f}, KV cache {:.2f}, one pass {:.2f}\n",
                           of(runs.peak) == Limits::Of::cpu ? "" : " of the host", facts.peak_memory / kGiB,
                           static_cast<double>(facts.need.weights) / kGiB, static_cast<double>(facts.need.cache) / kGiB,
                           static_cast<double>(facts.need.pass) / kGiB);
  if (facts.preempted > kCalmPreemptions) {
    std::cout << fmt::format("this machine was busy: other processes preempted this run {:.0f} times per second\n",
                             facts.preempted);
  }
}

void print_json(const Facts& facts, const Limits& limits, const ModelRuns& runs, const Json& peer) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson found = OrderedJson::array(), rows = OrderedJson::array();
  for (const Limit limit : {limits.memory(), runs.peak}) {
    const std::vector<double>& readings = limits.readings(limit, Limits::On::all);
    found.push_back({{"name", text_of(limit).name},
                     {"unit", text_of(limit).unit},
                     {"readings", readings.size()},
                     {"best", best_of(readings) / text_of(limit).scale},
                     {"median", median_of(readings) / text_of(limit).scale}});
  }
  for (const RunRow& row : runs.rows) {
    OrderedJson kernels = OrderedJson::array();
    for (const KernelTime& k : row.kernels) {
      kernels.push_back({{"name", k.name}, {"share", k.seconds / row.total_seconds()}, {"calls", k.calls}});
    }
    rows.push_back({{"name", row.name},
                    {"tokens", row.tokens},
                    {"seconds", row.seconds},
                    {"tokens_per_second", {{"best", row.tokens_best()}, {"median", row.tokens_median()}}},
                    {"bytes", row.cost.bytes},
                    {"operations", row.cost.operations},
                    {"share_of_read", row.share_of_read()},
                    {"share_of_peak", row.share_of_peak()},
                    {"kernels", kernels}});
  }
  const OrderedJson all{
      {"machine",
       {{"device", facts.device},
        {"threads", limits.threads()},
        {"kernels", facts.kernels},
        {"put_off_per_second", facts.preempted}}},
      {"model", facts.model},
      {"dtype", facts.dtype},
      {"cache", facts.cache},
      {"limits", found},
      {"rows", rows},
      {"peer", peer},
      {"memory",
       {{of(runs.peak) == Limits::Of::cpu ? "peak" : "host_peak", facts.peak_memory},
        {"estimate", {{"weights", facts.need.weights}, {"cache", facts.need.cache}, {"pass", facts.need.pass}}}}}};
  std::cout << all.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
}

void check(const Wanted& wanted, const ModelSpec& spec) {
  const RunsWanted& runs = wanted.runs;
  QKV_CHECK(spec.kind == ModelSpec::Kind::decoder_only, wanted.model, " is a ", name_of(spec.kind), " model, a ",
            spec.family, Hint("prefill and decode are measured for decoder-only models"));
  QKV_CHECK(runs.prompt > 0 || runs.tokens > 0, "--pp ", runs.prompt, " and --tg ", runs.tokens,
            " leave nothing to measure", Hint("one of them is 1 or more"));
  const int64_t longest = std::max(runs.prompt, runs.tokens + 1);
  QKV_CHECK(spec.context == 0 || longest <= spec.context, "--pp ", runs.prompt, " and --tg ", runs.tokens,
            " do not fit: this model's context has ", spec.context, Hint("measure shorter texts"));
}

// A folder or file, or a built-in configuration with random weights.
std::unique_ptr<Model> model_of(const Wanted& wanted, const Engine& engine) {
  if (!wanted.preset.empty()) {
    ModelSpec spec = preset_spec(wanted.preset);
    check(wanted, spec);
    return random_model(std::move(spec), engine, wanted.dtype == "f32" ? DType::f32 : DType::bf16);
  }
  const Checkpoint checkpoint = Checkpoint::open(wanted.model);
  check(wanted, checkpoint.spec);
  return checkpoint.model(engine.device());
}

// The same decoding in PyTorch, where the model is a Llama; null where it is not wanted.
Json peer_of(const Wanted& wanted, const ModelSpec& spec) {
  if (wanted.peer.empty() || spec.family != "llama" || wanted.runs.tokens == 0) return {};
  const LayerSpec& layer = spec.decoder.layers.front();
  const Json work = {{"layers", spec.decoder.layers.size()}, {"width", spec.width},
                     {"heads", layer.attention.heads},       {"kv_heads", layer.attention.kv_heads},
                     {"hidden", layer.feed.width},           {"vocab", spec.vocabulary},
                     {"length", wanted.runs.tokens + 1},     {"batches", wanted.runs.batches}};
  return torch_peer(wanted.peer, "decode", work);
}

void bench(const Wanted& wanted) {
  const Engine engine(timed_kernels(kernels_of(wanted.device)), {.threads = wanted.threads});
  const auto model = model_of(wanted, engine);
  const RunsWanted& runs = wanted.runs;
  const bool f32 = wanted.dtype.empty() ? format_of(*model) == "f32" : wanted.dtype == "f32";
  const int64_t most = *std::max_element(runs.batches.begin(), runs.batches.end());
  // The scheduler reserves one page more than a text fills.
  const RunOptions options{.precision = f32 ? Precision::f32() : Precision::bf16(),
                           .cache = wanted.cache == "f32"  ? DType::f32
                                    : wanted.cache == "i8" ? DType::i8
                                                           : DType::bf16,
                           .positions = std::max(runs.prompts * KvCache::whole_pages(runs.prompt),
                                                 most * (KvCache::whole_pages(runs.tokens + 1) + KvCache::kPage)),
                           .chunk = std::max(runs.prompts * runs.prompt, most)};
  Facts facts{
      .device = device_name(engine.device()),
      .kernels = engine.kernels().name,
      .model = fmt::format("{}, {} in {}", wanted.preset + wanted.model, model->spec().family, format_of(*model)),
      .dtype = f32 ? "f32" : "bf16",
      .cache = wanted.cache,
      .need = Runner::need(*model, engine, options)};
  Runner runner(*model, engine, options);
  Limits limits(*engine.exec().pool, limits_of(engine));
  const auto start = std::chrono::steady_clock::now();
  const double preempted = preemptions();
  Progress progress("bench run", runs.rounds * static_cast<int64_t>(1 + runs.batches.size()));
  const ModelRuns measured = measure_runs(
      runner, limits, runs, [&](const std::string& what, int64_t done, int64_t) { progress.update(done, what); });
  progress.finish();
  facts.preempted =
      (preemptions() - preempted) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  facts.peak_memory = peak_memory() - static_cast<double>(Limits::kReadBytes);
  const Json peer = peer_of(wanted, model->spec());
  wanted.json ? print_json(facts, limits, measured, peer) : print(facts, limits, measured, peer);
}

int run(int argc, char** argv) {
  CLI::App app{"Speed of prefill and decode, as a share of this machine's limits", "qkv bench run"};
  Wanted wanted;
  const auto count = CLI::Range(int64_t{0}, int64_t{1} << 20);
  auto* what = app.add_option_group("model")->require_option(1);
  what->add_option("MODEL", wanted.model, "A model folder or a .gguf file");
  what->add_option("--preset", wanted.preset, "A built-in model configuration; the weights are random");
  add_device_option(app, wanted.device);
  app.add_option("--peer", wanted.peer, "torch_peer.py, to measure PyTorch in the same run");
  app.add_option("--threads", wanted.threads, "Number of threads; default: one per available CPU")
      ->check(CLI::Range(1, kMostThreads));
  app.add_option("--dtype", wanted.dtype, "f32 or bf16; default: f32 for a model stored in f32, else bf16")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--cache", wanted.cache, "Dtype of the KV cache: f32, bf16 or i8")
      ->check(CLI::IsMember({"f32", "bf16", "i8"}))
      ->capture_default_str();
  app.add_option("--pp", wanted.runs.prompt, "Prompt tokens (prefill); 0: do not measure")
      ->check(count)
      ->capture_default_str();
  app.add_option("--prompts", wanted.runs.prompts, "Prompts in one pass")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  app.add_option("--tg", wanted.runs.tokens, "Tokens to generate (decode); 0: do not measure")
      ->check(count)
      ->capture_default_str();
  app.add_option("--batch", wanted.runs.batches, "Sessions decoding together, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  app.add_option("--rounds", wanted.runs.rounds, "Number of rounds")
      ->check(CLI::Range(int64_t{1}, int64_t{100}))
      ->capture_default_str();
  app.add_flag("--json", wanted.json, "Print JSON: machine, model, limits, rows, memory");
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] { bench(wanted); });
}

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  return qkv::bench::run(argc, argv);
}
