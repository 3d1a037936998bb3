// ./qkv bench heads: the cost of attention statistics. A plain forward pass, and one with entropy, offsets 0 to 4,
// first key, distance and punctuation of all heads computed inside the attention kernel.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bed.h"
#include "command.h"
#include "inspect/heads/role_probe.h"
#include "kernels/tables.h"
#include "model/families/family.h"
#include "model/families/presets.h"
#include "model/initialise.h"
#include "model/weight_list.h"

namespace {

using namespace qkv;

constexpr double kAtMost = 1.10;

struct Options {
  std::string preset = "gpt2", dtype = "bf16";
  int64_t tokens = 512, rounds = 7;
  int threads = 2;
};

std::unique_ptr<Model> random_model(const std::string& preset) {
  ModelSpec spec = read_spec(Config(preset_config(preset), preset));
  Weights weights;
  for (const WeightSpec& one : weight_list(spec)) {
    Param& param = weights.add(Param(one.name, cpu_device(), Format(DType::f32), one.shape));
    initial_numbers(one, 1, 0, {param.master().as<float>(), static_cast<size_t>(one.shape.count())});
  }
  return Model::make(std::move(spec), std::move(weights));
}

void run(const Options& options) {
  const Engine engine(kernels::best_table(), {.threads = options.threads});
  const auto model = random_model(options.preset);
  std::vector<TokenText> texts(1);
  for (int64_t i = 0; i < options.tokens; ++i)
    texts[0].ids.push_back(static_cast<int32_t>(i * 7919 % model->spec().vocabulary));
  Reader reader(*model, engine,
                {.precision = options.dtype == "bf16" ? Precision::bf16() : Precision::f32(), .rows = options.tokens});
  RoleTexts known(texts, model->spec(), nullptr);
  known.know_kinds([](int32_t id) { return id % 10 == 0 ? TokenKind::comma : TokenKind::other; });
  RoleSums sums(all_heads(model->spec()).size(), texts.size());
  const RoleOptions fast{.patterns = false};
  RoleProbe probe(*model, known, sums, fast);

  std::vector<double> plain, counted;
  for (int64_t r = 0; r <= options.rounds; ++r) {  // alternating; the first of each reads the weights and is dropped
    plain.push_back(bench::seconds_of([&] { reader.losses(texts); }));
    counted.push_back(bench::seconds_of([&] { reader.losses(texts, &probe); }));
  }
  const auto best = [&](std::vector<double>& all) {
    all.erase(all.begin());
    return *std::min_element(all.begin(), all.end());
  };
  const double alone = best(plain), with = best(counted), rate = static_cast<double>(options.tokens) / with;
  std::cout << fmt::format("{}, random weights, {}, {} tokens, with the output head, {} threads, best of {}\n",
                           options.preset, options.dtype, options.tokens, options.threads, options.rounds);
  std::cout << fmt::format("forward                                    {:8.1f} ms  {:8.0f} tokens/s\n", 1e3 * alone,
                           static_cast<double>(options.tokens) / alone);
  std::cout << fmt::format("forward with statistics of all heads       {:8.1f} ms  {:8.0f} tokens/s\n", 1e3 * with,
                           rate);
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
  app.add_option("--rounds", options.rounds, "Number of rounds; the best counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Number of threads; 0: one per CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
