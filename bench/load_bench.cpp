// The time to load a model, and the memory it holds after a pass:
//   qkv_bench_load DIR
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "core/engine.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"

namespace {

using namespace qkv;

constexpr int kOpenings = 7, kTokens = 8;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A line of /proc/self/status, in MiB.
double memory_now(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == key + ":") status >> kib;
  }
  return kib / 1024;
}

void measure(const std::string& folder) {
  double best = 1e9;
  for (int i = 0; i < kOpenings; ++i) {
    const double start = seconds();
    const auto model = Checkpoint::open(folder).model();
    best = std::min(best, seconds() - start);
  }
  const double before = memory_now("VmRSS");
  const auto model = Checkpoint::open(folder).model();
  const double opened = memory_now("VmRSS") - before;

  const Precision precision = model->spec().dtype == DType::f32 ? Precision::f32() : Precision::bf16();
  double first = 0, again = 1e9;
  {
    const Engine engine(kernels::best_table());
    Arena arena(cpu_device());
    for (int i = 0; i < 3; ++i) {
      Context cx = engine.context(arena, precision);
      const Arena::Mark mark = arena.mark();
      const double start = seconds();
      const Tensor ids = cx.upload(std::vector<int32_t>(kTokens, 1));
      const Rows rows = Rows::batch(cx, 1, kTokens);
      model->logits(cx, {.ids = ids, .rows = &rows});
      (i == 0 ? first : again) = i == 0 ? seconds() - start : std::min(again, seconds() - start);
      arena.rewind(mark);
    }
    const double held = memory_now("VmRSS");
    double weights = 0;
    for (const auto& [name, weight] : model->weights()) {
      weights += static_cast<double>(weight.shape().count() * size_of(weight.format().dtype)) / (1 << 20);
    }
    std::cout << fmt::format(
        "ready: {:.1f} ms, best of {}, {:.1f} MiB touched\n"
        "pass of {} tokens: {:.2f} s the first time, {:.2f} s after that\n"
        "resident: {:.0f} MiB ({:.0f} of the file, {:.0f} other) for {:.0f} MiB of weights, {:.3f} times\n",
        best * 1e3, kOpenings, opened, kTokens, first, again, held, memory_now("RssFile"), memory_now("RssAnon"),
        weights, held / weights);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: qkv_bench_load DIR\n  a model folder, for example of  qkv new --preset tinyllama-1.1b --out "
                 "DIR --dtype "
                 "bf16\n";
    return 2;
  }
  try {
    measure(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
