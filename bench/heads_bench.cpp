// ./qkv bench heads: what looking costs. A forward pass alone, and with entropy, offsets 0 to 4, first key, distance
// and punctuation of all heads counted inside attention's kernel.
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

constexpr double kHuggingFace = 474;  // tokens/s with output_attentions, on two threads of the CPU type measured
constexpr double kAtMost = 1.10, kTimes = 10;

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
  for (int64_t r = 0; r <= options.rounds; ++r) {  // in turns; the first of each reads the weights
    plain.push_back(bench::seconds_of([&] { reader.losses(texts); }));
    counted.push_back(bench::seconds_of([&] { reader.losses(texts, &probe); }));
  }
  const auto best = [&](std::vector<double>& all) {
    all.erase(all.begin());
    return *std::min_element(all.begin(), all.end());
  };
  const double alone = best(plain), with = best(counted), rate = static_cast<double>(options.tokens) / with;
  std::cout << fmt::format("{}, random weights, {}, {} tokens, the head included, {} threads, best of {}\n",
                           options.preset, options.dtype, options.tokens, options.threads, options.rounds);
  std::cout << fmt::format("forward alone                              {:8.1f} ms  {:8.0f} tokens/s\n", 1e3 * alone,
                           static_cast<double>(options.tokens) / alone);
  std::cout << fmt::format("with what the kernel counts, all heads     {:8.1f} ms  {:8.0f} tokens/s\n", 1e3 * with,
                           rate);
  std::cout << fmt::format("times the forward alone: {:.3f} (at most {:.2f})\n", with / alone, kAtMost);
  std::cout << fmt::format("times Hugging Face with output_attentions ({} tokens/s): {:.1f} (at least {:.0f})\n",
                           kHuggingFace, rate / kHuggingFace, kTimes);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What looking at all heads costs", "qkv bench heads"};
  Options options;
  app.add_option("--preset", options.preset, "Shape of the model, with random weights")->capture_default_str();
  app.add_option("--dtype", options.dtype, "What it computes in")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Of the text")->check(CLI::Range(8, 1 << 20))->capture_default_str();
  app.add_option("--rounds", options.rounds, "The best of these counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "0: as many as there are")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  return bench::run_command(app, argc, argv, [&] { run(options); });
}
