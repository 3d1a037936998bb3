// Speed of every row of the op table on every kernel table:  ./qkv test --bench [--benchmark_filter=...]
// The shapes are small and odd on purpose; they show what a change did to an op, not what the machine can do.
#include <benchmark/benchmark.h>

#include "op_cases.h"

namespace qkv::test {
namespace {

void forward(benchmark::State& state, const OpCase& op, const OpRun& how) {
  OpRunner runner(op, op_values(op, how.rows, 0, how.precision.compute), how);
  const auto start = runner.pass().arena.mark();
  for (auto _ : state) {
    benchmark::DoNotOptimize(runner.forward());
    runner.pass().arena.rewind(start);
  }
  state.SetItemsProcessed(state.iterations() * how.rows);
}

void forward_and_backward(benchmark::State& state, const OpCase& op, const OpRun& how) {
  const OpValues values = op_values(op, how.rows, 0, how.precision.compute);
  for (auto _ : state) {
    state.PauseTiming();  // a tape is used up by its backward pass
    OpRunner runner(op, values, how);
    state.ResumeTiming();
    const std::vector<Tensor> outputs = runner.forward();
    state.PauseTiming();
    runner.seed(outputs);
    state.ResumeTiming();
    runner.backward();
  }
  state.SetItemsProcessed(state.iterations() * how.rows);
}

const bool registered = [] {
  for (const OpCase& op : op_cases()) {
    for (const Kernels* table : kernels::all_tables()) {
      for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
        OpRun how{.kernels = table, .precision = precision, .threads = 0, .rows = op.bench_rows};
        const std::string name = op.name + "/" + table->name + "/" + name_of(precision.compute);
        benchmark::RegisterBenchmark((name + "/both").c_str(), [&op, how](auto& state) {
          forward_and_backward(state, op, how);
        })->UseRealTime();
        how.backward = false;
        benchmark::RegisterBenchmark((name + "/forward").c_str(), [&op, how](auto& state) {
          forward(state, op, how);
        })->UseRealTime();
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace qkv::test
