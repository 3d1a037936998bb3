// ./qkv bench heads: the cost of attention statistics. A plain forward pass, and one with entropy, offsets 0 to 4,
// first key, distance and punctuation of all heads computed inside the attention kernel. The limits of the machine are read
// before and after; statistics are not counted as operations.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bed.h"
#include "command.h"
#include "inspect/heads/role_probe.h"
#include "kernels/tables.h"
#include "measure.h"
#include "pass_cost.h"
#include "random_model.h"
#include "torch_peer.h"

namespace {

using namespace qkv;

constexpr double kAtMost = 1.10;

struct Options {
  std::string preset = "gpt2", dtype = "bf16", device = "cpu", peer;
  int64_t tokens = 512, sequence = 0, rounds = 7;
  int threads = 0;
};

// Of products in a pass over all texts, with logits of every row.
double operations_of(const Model& model, DType compute, const std::vector<TokenText>& texts) {
  const bench::PassCost cost(model, {.precision = bench::precision_of(compute), .cache = compute});
  double all = 0;
  for (const TokenText& text : texts) {
    const int64_t rows = std::ssize(text.ids);
    all += cost.weights(rows, rows).operations;
    for (int64_t keys = 1; keys <= rows; ++keys) all += cost.attention(keys).operations;
  }
  return all;
}

void print(const bench::Limits& limits, bench::Limit limit) {
  const std::vector<double>& readings = limits.readings(limit, bench::Limits::On::all);
  const bench::LimitText& text = text_of(limit);
  std::cout << fmt::format("{:<42} {:8.2f} {} at best, median {:.2f}\n", text.name,
                           bench::best_of(readings) / text.scale, text.unit, bench::median_of(readings) / text.scale);
}

void run(const Options& options) {
  const DType compute = options.dtype == "bf16" ? DType::bf16 : DType::f32;
  const Engine engine(bench::kernels_of(options.device), {.threads = options.threads});
  const auto model = bench::random_model(bench::preset_spec(options.preset), engine, DType::f32);
  const int64_t sequence = options.sequence > 0 ? options.sequence : options.tokens;
  std::vector<TokenText> texts(static_cast<size_t>((options.tokens + sequence - 1) / sequence));
  for (int64_t i = 0; i < options.tokens; ++i) {
    texts[static_cast<size_t>(i / sequence)].ids.push_back(static_cast<int32_t>(i * 7919 % model->spec().vocabulary));
  }
  Reader reader(*model, engine, {.precision = bench::precision_of(compute), .rows = options.tokens});
  RoleTexts known(texts, model->spec(), nullptr);
  known.know_kinds([](int32_t id) { return id % 10 == 0 ? TokenKind::comma : TokenKind::other; });
  RoleSums sums(all_heads(model->spec()).size(), texts.size());
  const RoleOptions fast{.patterns = false};
  RoleProbe probe(*model, known, sums, fast);

  bench::Limits limits(*engine.exec().pool, bench::limits_of(engine));
  bench::read_limits(limits);
  std::vector<double> plain, counted;
  for (int64_t r = 0; r <= options.rounds; ++r) {  // alternating; the first of each reads the weights and is dropped
    plain.push_back(bench::seconds_of([&] { reader.losses(texts); }));
    counted.push_back(bench::seconds_of([&] { reader.losses(texts, &probe); }));
  }
  bench::read_limits(limits);
  const bench::Limit peak = compute == DType::bf16 ? limits.fastest_bf16() : limits.fastest_f32();
  const auto best = [&](std::vector<double>& all) {
    all.erase(all.begin());
    return *std::min_element(all.begin(), all.end());
  };
  const double alone = best(plain), with = best(counted), rate = static_cast<double>(options.tokens) / with;
  std::cout << fmt::format("{}, {}, random weights, {}, {} tokens, with the output head, {} threads, best of {}\n",
                           bench::device_name(engine.device()), options.preset, options.dtype, options.tokens,
                           engine.threads(), options.rounds);
  for (const bench::Limit limit : {limits.memory(), peak}) print(limits, limit);
  const double operations = operations_of(*model, compute, texts),
               most = bench::best_of(limits.readings(peak, bench::Limits::On::all));
  for (const auto& [name, seconds] :
       {std::pair{"forward", alone}, std::pair{"forward with statistics of all heads", with}}) {
    std::cout << fmt::format("{:<42} {:8.1f} ms  {:8.0f} tokens/s  {:3.0f} % of the peak\n", name, 1e3 * seconds,
                             static_cast<double>(options.tokens) / seconds, 100 * operations / seconds / most);
  }
  const Json work = {{"layers", model->spec().decoder.layers.size()},
                     {"width", model->spec().width},
                     {"heads", model->spec().decoder.layers.front().attention.heads},
                     {"vocab", model->spec().vocabulary},
                     {"tokens", options.tokens},
                     {"sequence", sequence}};
  const Json peer = model->spec().family == "gpt2" ? bench::torch_peer(options.peer, "maps", work) : Json();
  for (const auto& [key, name] :
       {std::pair{"plain", "plain, written by hand"}, std::pair{"maps", "with maps, written by hand"},
        std::pair{"transformers_plain", "plain, transformers"},
        std::pair{"transformers_maps", "with maps, transformers"}}) {
    const std::string field = std::string(key) + "_tokens_per_second";
    if (!peer.contains(field)) continue;
    const double theirs = peer[field].get<double>();
    std::cout << fmt::format("PyTorch {:<36}{:20.0f} tokens/s; ours with statistics {:.2f} times that\n", name, theirs,
                             rate / theirs);
  }
  std::cout << fmt::format("ratio to plain forward: {:.3f} (at most {:.2f})\n", with / alone, kAtMost);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cost of the statistics of all heads", "qkv bench heads"};
  Options options;
  app.add_option("--preset", options.preset, "Model configuration; the weights are random")->capture_default_str();
  app.add_option("--dtype", options.dtype, "Compute dtype")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens of the text")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--seq", options.sequence, "Tokens of one text; 0: all are one")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  bench::add_device_option(app, options.device);
  app.add_option("--peer", options.peer, "torch_peer.py, to measure PyTorch in the same run");
  app.add_option("--rounds", options.rounds, "Number of rounds; the best counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Number of threads; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
