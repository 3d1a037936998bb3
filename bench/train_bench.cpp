// ./qkv bench train: training speed as a share of this machine's matmul peak, and where the time goes.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "bed.h"
#include "command.h"
#include "kernels/tables.h"
#include "measure.h"
#include "micro_batches.h"
#include "model/checkpoint/checkpoint.h"
#include "model/families/presets.h"
#include "random_model.h"
#include "timed_kernels.h"
#include "torch_peer.h"
#include "train/trainer.h"

namespace qkv::bench {
namespace {

constexpr double kGiB = 1 << 30;
constexpr int64_t kCharacters = 65;  // for recipes whose vocabulary comes from their text

constexpr const char* kExamples = R"(Examples:
  ./qkv bench train --preset gpt2 --tokens 4096 --seq 1024
  ./qkv bench train --preset gpt2 --tokens 1024 --seq 1024 --precision f32 --json
  ./qkv bench train --recipe recipes/shakespeare-char.json --steps 200
  ./qkv bench train --preset gpt2 --tokens 32768 --seq 1024 --steps 20 --device cuda
  ./qkv bench train --preset transformer-base --tokens 32768 --seq 128 --steps 20 --device cuda

Steps on random tokens and initial weights; the first is not counted. The matmul peak is measured between the steps,
and a step's share is relative to the readings around it; median of the steps. On a GPU, whose clock falls under load,
it is measured before and after them, and PyTorch makes as many steps in a row. What memory gives is measured before.

Operations: six per weight and token (embeddings are looked up, not multiplied), plus attention, half of the full
square for a causal mask. Recomputation is not counted. On a GPU the time of each kernel is taken from two more steps
that wait for every kernel.

Exit codes: 0 done, 2 the request is wrong, 3 a fault of qkv itself.)";

struct Wanted {
  std::string preset, recipe, precision, device = "cpu", peer;
  int64_t tokens = 0, sequence = 0, micro_batches = 0, steps = 5;
  int threads = 0;
  bool json = false;
};

// Random tokens; of an encoder-decoder, half of them are sources.
class RandomTokens : public TrainData {
 public:
  RandomTokens(const Recipe& recipe, const ModelSpec& spec)
      : recipe_(recipe), vocabulary_(spec.vocabulary), sources_(spec.has_source()) {}

  TrainBatch micro_batch(int64_t step, int64_t micro) const override {
    const int64_t all = recipe_.batch_tokens / recipe_.micro_batches, rows = sources_ ? all / 2 : all;
    const int64_t k = step * recipe_.micro_batches + micro;
    TrainBatch made{.counted = rows, .first_row = k * rows};
    const auto token = [&](int64_t i) {
      const uint64_t bits = random_bits(1, static_cast<uint64_t>(k * rows + i));
      return static_cast<int32_t>(bits % static_cast<uint64_t>(vocabulary_));
    };
    for (int64_t i = 0; i < rows; ++i) {
      made.ids.push_back(token(i));
      made.targets.push_back(token(i + 1));
    }
    made.lengths.assign(static_cast<size_t>(rows / recipe_.sequence), static_cast<int32_t>(recipe_.sequence));
    if (sources_) {
      made.source_ids.assign(made.targets.rbegin(), made.targets.rend());
      made.source_lengths = made.lengths;
    }
    return made;
  }
  int64_t validation_batches() const override { return 0; }
  TrainBatch validation_batch(int64_t) const override { return {}; }

 private:
  const Recipe& recipe_;
  int64_t vocabulary_;
  bool sources_;
};

// The given recipe, or one made from a preset; the command line overrides it.
Recipe recipe_for(const Wanted& wanted) {
  Recipe recipe{.name = wanted.preset};
  if (!wanted.recipe.empty()) {
    recipe = read_recipe(parse_json(read_file(wanted.recipe, 16 << 20), wanted.recipe), wanted.recipe);
    QKV_CHECK(recipe.objective == Recipe::Objective::causal || recipe.objective == Recipe::Objective::translate,
              wanted.recipe, " is a recipe to ", name_of(recipe.objective),
              Hint("only next-token and translation recipes are measured"));
  }
  if (wanted.recipe.empty() || recipe.model.contains("preset")) {
    Json base = preset_config(wanted.recipe.empty() ? wanted.preset : recipe.model["preset"].get<std::string>());
    if (recipe.model.is_object()) base.merge_patch(recipe.model);
    base.erase("preset");
    recipe.model = std::move(base);
  }
  if (wanted.tokens > 0) recipe.batch_tokens = wanted.tokens;
  if (wanted.sequence > 0) recipe.sequence = wanted.sequence;
  if (!wanted.precision.empty()) recipe.bf16 = wanted.precision == "bf16";
  for (const auto& [key, value] :
       {std::pair{"vocab_size", recipe.tokenizer.vocab > 0 ? recipe.tokenizer.vocab : kCharacters},
        std::pair{"max_position_embeddings", recipe.sequence}}) {
    if (!recipe.model.contains(key)) recipe.model[key] = value;
  }
  recipe.evaluate = {};
  recipe.checkpoint = {};
  return recipe;
}

ModelSpec spec_for(const Recipe& recipe) {
  ModelSpec spec = read_spec(Config(recipe.model, recipe.name));
  QKV_CHECK(spec.kind != ModelSpec::Kind::encoder_only, recipe.name, " is a ", name_of(spec.kind), " model",
            Hint("training is measured for decoder-only models and encoder-decoders"));
  QKV_CHECK(spec.context == 0 || recipe.sequence <= spec.context, "--seq ", recipe.sequence,
            " is longer than this model's context of ", spec.context, Hint("use a shorter sequence"));
  return spec;
}

// The same training in PyTorch; null where it is not wanted or not known there.
Json peer_of(const Wanted& wanted, const Recipe& recipe, const ModelSpec& spec) {
  if (wanted.peer.empty() || (!spec.has_source() && spec.family != "gpt2")) return {};
  const LayerSpec& layer = spec.decoder.layers.front();
  const Json work = {
      {"layers", spec.decoder.layers.size()}, {"width", spec.width},      {"heads", layer.attention.heads},
      {"hidden", layer.feed.width},           {"vocab", spec.vocabulary}, {"tokens", recipe.batch_tokens},
      {"sequence", recipe.sequence},          {"rounds", wanted.steps}};
  return torch_peer(wanted.peer, spec.has_source() ? "pairs" : "train", work);
}

struct Found {
  std::string device, kernels_used, model;
  int threads = 1;
  double preempted = 0;  // preemptions per second
  const Recipe& recipe;
  Limit peak_kind = Limit::f32_plain, memory_kind = Limit::read_eight;
  double operations = 0;  // of one step
  Trainer::Memory plan;
  double peak_memory = 0;  // bytes of the host's, without the buffer of the read limit

  std::vector<double> seconds, peaks;  // of each step; operations per second around it
  std::vector<double> memory;          // bytes per second, read before the first
  StepSeconds parts;                   // of all steps
  std::vector<KernelTime> kernels;     // of `timed_steps`
  int64_t timed_steps = 0;
  Json peer;

  double total() const {
    double sum = 0;
    for (const double s : seconds) sum += s;
    return sum;
  }
  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double share() const {
    std::vector<double> shares;
    for (size_t i = 0; i < seconds.size(); ++i) shares.push_back(operations / seconds[i] / peaks[i]);
    return median_of(shares);
  }
  // Other: drawing batches, counting weights.
  std::vector<std::pair<const char*, double>> named_parts() const {
    const double rest = total() - parts.forward - parts.backward - parts.gradients - parts.norm - parts.update;
    return {{"forward", parts.forward},    {"backward", parts.backward}, {"gradient tree", parts.gradients},
            {"gradient norm", parts.norm}, {"optimiser", parts.update},  {"other", rest}};
  }
};

void print(const Found& f) {
  const LimitText &peak = text_of(f.peak_kind), &memory = text_of(f.memory_kind);
  const double tokens = number(f.recipe.batch_tokens), steps = number(static_cast<int64_t>(f.seconds.size()));
  std::cout << fmt::format("{}, {} thread{}, kernels {}\n{}\n\n", f.device, f.threads, f.threads == 1 ? "" : "s",
                           f.kernels_used, f.model);
  std::cout << fmt::format("{:<14}{:>12}{:>12}\n", "", "best", "median");
  const auto line = [](const char* name, double best, double median, const char* unit) {
    std::cout << fmt::format("{:<14}{:>12.4g}{:>12.4g}  {}\n", name, best, median, unit);
  };
  const double median = median_of(f.seconds);
  line("per step", 1e3 * f.best(), 1e3 * median, "ms");
  line("speed", tokens / f.best(), tokens / median, "tokens/s");
  line("matmul", f.operations / f.best() / peak.scale, f.operations / median / peak.scale, peak.unit);
  line(peak.label, best_of(f.peaks) / peak.scale, median_of(f.peaks) / peak.scale, peak.unit);
  line(memory.label, best_of(f.memory) / memory.scale, median_of(f.memory) / memory.scale, memory.unit);
  std::cout << fmt::format("share of matmul peak ({}): {:.1f} %\n", peak.name, 100 * f.share());
  if (of(f.peak_kind) == Limits::Of::cpu) {  // a GPU is given a whole step before anything is waited for
    std::cout << fmt::format("\n{:<26}{:>10}{:>9}\n", "time per step", "ms", "share");
    for (const auto& [name, seconds] : f.named_parts()) {
      std::cout << fmt::format("{:<26}{:>10.3f}{:>8.1f}%\n", name, 1e3 * seconds / steps, 100 * seconds / f.total());
    }
  }
  std::cout << fmt::format("\n{:<26}{:>10}{:>9}{:>8}\n", "by kernel", "ms", "share", "calls");
  const double timed = number(f.timed_steps);
  double rest = median;
  for (const KernelTime& kernel : f.kernels) {
    const double each = kernel.seconds / timed;
    rest -= each;
    std::cout << fmt::format("{:<26}{:>10.3f}{:>8.1f}%{:>8.0f}\n", kernel.name, 1e3 * each, 100 * each / median,
                             static_cast<double>(kernel.calls) / timed);
  }
  std::cout << fmt::format("{:<26}{:>10.3f}{:>8.1f}%\n", "outside kernels", 1e3 * rest, 100 * rest / median);
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
  std::cout << fmt::format(
      "\npeak memory{} {:.2f} GiB; planned {:.2f}: weights {:.2f}, copies {:.2f}, gradients {:.2f}, optimiser {:.2f}, "
      "activations {:.2f}\n",
      of(f.peak_kind) == Limits::Of::cpu ? "" : " of the host", f.peak_memory / kGiB, gib(f.plan.total()),
      gib(f.plan.weights), gib(f.plan.copies), gib(f.plan.gradients), gib(f.plan.states), gib(f.plan.activations));
  if (!f.peer.is_null()) {
    const double theirs = f.peer["tokens_per_second"].get<double>();
    std::cout << fmt::format("{}: {:.4g} tokens/s; ours {:.2f} times that\n", f.peer["peer"].get<std::string>(), theirs,
                             tokens / median / theirs);
  }
  if (f.preempted > kCalmPreemptions) {
    std::cout << fmt::format("this machine was busy: other processes preempted this run {:.0f} times per second\n",
                             f.preempted);
  }
}

void print_json(const Found& f) {
  using OrderedJson = nlohmann::ordered_json;
  const LimitText &peak = text_of(f.peak_kind), &memory = text_of(f.memory_kind);
  const double tokens = number(f.recipe.batch_tokens);
  OrderedJson parts = OrderedJson::object(), kernels = OrderedJson::array();
  for (const auto& [name, seconds] : f.named_parts()) parts[name] = seconds / f.total();
  for (const KernelTime& k : f.kernels) {
    const double each = k.seconds / number(f.timed_steps);
    kernels.push_back({{"name", k.name}, {"share", each / median_of(f.seconds)}, {"calls", k.calls / f.timed_steps}});
  }
  const OrderedJson all{
      {"machine",
       {{"device", f.device},
        {"threads", f.threads},
        {"kernels", f.kernels_used},
        {"put_off_per_second", f.preempted}}},
      {"model", f.model},
      {"tokens", f.recipe.batch_tokens},
      {"seconds", f.seconds},
      {"tokens_per_second", {{"best", tokens / f.best()}, {"median", tokens / median_of(f.seconds)}}},
      {"operations", f.operations},
      {"tflops", {{"best", f.operations / f.best() / 1e12}, {"median", f.operations / median_of(f.seconds) / 1e12}}},
      {"peak",
       {{"name", peak.name}, {"best", best_of(f.peaks) / peak.scale}, {"median", median_of(f.peaks) / peak.scale}}},
      {"share_of_peak", f.share()},
      {"memory_rate",
       {{"name", memory.name},
        {"best", best_of(f.memory) / memory.scale},
        {"median", median_of(f.memory) / memory.scale}}},
      {"peer", f.peer},
      {"parts", parts},
      {"kernels", kernels},
      {"memory",
       {{of(f.peak_kind) == Limits::Of::cpu ? "peak" : "host_peak", f.peak_memory},
        {"planned", f.plan.total()},
        {"parts",
         {{"weights", f.plan.weights},
          {"copies", f.plan.copies},
          {"gradients", f.plan.gradients},
          {"optimiser", f.plan.states},
          {"activations", f.plan.activations}}}}}};
  std::cout << all.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
}

void bench(const Wanted& wanted) {
  Recipe recipe = recipe_for(wanted);
  const ModelSpec spec = spec_for(recipe);
  recipe.micro_batches =
      micro_batches_of_whole_texts(recipe.batch_tokens, spec.has_source() ? 2 * recipe.sequence : recipe.sequence,
                                   wanted.micro_batches, recipe.micro_batches);
  const Json peer = peer_of(wanted, recipe, spec);  // first, while a GPU's memory is free
  const Engine engine(timed_kernels(kernels_of(wanted.device)), {.threads = wanted.threads});
  const bool gpu = limits_of(engine) == Limits::Of::gpu;
  const int64_t timed_steps = gpu ? 2 : wanted.steps, first_timed = gpu ? wanted.steps + 1 : 1;
  recipe.steps = first_timed + timed_steps;
  const auto model = random_model(spec, engine, DType::f32);
  choose_trainable(*model, recipe.frozen);
  const RandomTokens data(recipe, model->spec());
  Trainer trainer(engine, recipe, *model, data);
  Found found{.device = device_name(engine.device()),
              .kernels_used = engine.kernels().name,
              .model = fmt::format("{}, {} tokens per step in sequences of {}, {} micro-batch{}, {}, {}", recipe.name,
                                   recipe.batch_tokens, recipe.sequence, recipe.micro_batches,
                                   recipe.micro_batches == 1 ? "" : "es", recipe.bf16 ? "bf16" : "f32",
                                   name_of(recipe.optimizer.kind)),
              .threads = engine.threads(),
              .recipe = recipe,
              .operations = trainer.operations_per_step(),
              .plan = Trainer::plan(engine, recipe, *model, data),
              .timed_steps = timed_steps,
              .peer = peer};
  Limits limits(*engine.exec().pool, limits_of(engine));
  read_limits(limits);
  found.peak_kind = recipe.bf16 ? limits.fastest_bf16() : limits.fastest_f32();
  found.memory_kind = limits.memory();
  found.memory = limits.readings(found.memory_kind, Limits::On::all);
  Progress progress("bench train", recipe.steps);
  double before = 0;
  constexpr double kPause = 0.5;  // seconds of work between two readings
  double since = kPause;
  TrainHooks hooks;
  hooks.on_step = [&](const StepReport& report) {
    since += report.seconds;
    double after = before;
    if (report.step == 0 || (gpu ? report.step == wanted.steps : since >= kPause)) {
      after = limits.read(found.peak_kind, Limits::On::all);
      since = 0;
    }
    if (report.step > 0 && report.step <= wanted.steps) {
      found.seconds.push_back(report.seconds);
      found.peaks.push_back((before + after) / 2);
      found.parts += report.result.seconds;
    }
    if (report.step + 1 == first_timed) {
      take_kernel_times();
      time_kernels(true);
    }
    before = after;
    progress.update(report.step + 1, "step");
  };
  time_kernels(!gpu);
  const double preempted = preemptions();
  const double seconds = seconds_of([&] { trainer.run(hooks); });
  found.preempted = (preemptions() - preempted) / seconds;
  found.kernels = take_kernel_times();
  progress.finish();
  found.peak_memory = peak_memory() - static_cast<double>(Limits::kReadBytes);
  wanted.json ? print_json(found) : print(found);
}

int run(int argc, char** argv) {
  CLI::App app{"Training speed as a share of this machine's matmul peak", "qkv bench train"};
  Wanted wanted;
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 24);
  auto* what = app.add_option_group("model")->require_option(1);
  what->add_option("--preset", wanted.preset, "A built-in model configuration");
  what->add_option("--recipe", wanted.recipe, "A recipe file: its model, batch, precision and optimiser");
  app.add_option("--tokens", wanted.tokens, "Tokens per step; default: the recipe's, or 4096")->check(count);
  app.add_option("--seq", wanted.sequence, "Tokens per sequence; default: the recipe's, or 256")->check(count);
  app.add_option("--micro-batches", wanted.micro_batches,
                 "Micro-batches per step; default: the recipe's, fewer where they would not hold whole sequences, or 1")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}));
  app.add_option("--precision", wanted.precision, "f32 or bf16; default: the recipe's, or bf16")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", wanted.threads, "Number of threads; default: one per available CPU")
      ->check(CLI::Range(1, kMostThreads));
  app.add_option("--steps", wanted.steps, "Number of measured steps")->check(count)->capture_default_str();
  add_device_option(app, wanted.device);
  app.add_option("--peer", wanted.peer, "torch_peer.py, to measure PyTorch in the same run");
  app.add_flag("--json", wanted.json, "Print JSON: machine, speed, parts, kernels, memory");
  app.footer(kExamples);
  return run_command(app, argc, argv, [&] { bench(wanted); });
}

}  // namespace
}  // namespace qkv::bench

int main(int argc, char** argv) {
  return qkv::bench::run(argc, argv);
}
