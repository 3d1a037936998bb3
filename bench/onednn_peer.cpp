// The peer: oneDNN's f32 product beside our linear, on the same numbers in the same run. The counter `rows_own_bits`
// says whether a row's result stays the same whatever the number of rows: 1 is what a kernel of ours must have.
#include <benchmark/benchmark.h>

#include <cstring>
#include <dnnl.hpp>
#include <vector>

#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

class Product {
 public:
  Product(int64_t rows, int64_t inner, int64_t outputs)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        x_({{rows, inner}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab}, engine_),
        w_({{inner, outputs}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ba}, engine_),
        y_({{rows, outputs}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab}, engine_),
        matmul_(
            dnnl::matmul::primitive_desc(dnnl::matmul::desc(x_.get_desc(), w_.get_desc(), y_.get_desc()), engine_)) {}

  void fill(const std::vector<float>& x, const std::vector<float>& w) {
    std::memcpy(x_.get_data_handle(), x.data(), x_.get_desc().get_size());
    std::memcpy(w_.get_data_handle(), w.data(), w_.get_desc().get_size());
  }
  const float* run() {
    matmul_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
    return static_cast<const float*>(y_.get_data_handle());
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory x_, w_, y_;
  dnnl::matmul matmul_;
};

std::vector<float> floats(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

constexpr int64_t kInner = 768, kOutputs = 768;

bool rows_keep_their_bits() {
  const std::vector<float> x = floats(normals(1, 512 * kInner)), w = floats(normals(2, kInner * kOutputs));
  Product all(512, kInner, kOutputs);
  all.fill(x, w);
  const float* whole = all.run();
  for (const int64_t rows : {1, 2, 15, 16, 17, 32}) {
    Product some(rows, kInner, kOutputs);
    some.fill(x, w);
    if (std::memcmp(some.run(), whole, static_cast<size_t>(rows * kOutputs) * sizeof(float)) != 0) return false;
  }
  return true;
}

void count_flops(benchmark::State& state, int64_t rows) {
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(state.iterations() * 2 * rows * kInner * kOutputs),
                                                benchmark::Counter::kIsRate);
}

void peer(benchmark::State& state) {
  Product product(state.range(0), kInner, kOutputs);
  product.fill(floats(normals(1, state.range(0) * kInner)), floats(normals(2, kInner * kOutputs)));
  for (auto _ : state) benchmark::DoNotOptimize(product.run());
  count_flops(state, state.range(0));
  static const bool own = rows_keep_their_bits();
  state.counters["rows_own_bits"] = own ? 1 : 0;
}

void ours(benchmark::State& state) {
  Pass pass({.kernels = &kernels::best_table(), .threads = 0});
  const Tensor x = pass.input(normals(1, state.range(0) * kInner), {state.range(0), kInner});
  const Param& w = pass.param("w", normals(2, kInner * kOutputs), {kOutputs, kInner});
  const auto start = pass.arena.mark();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::linear(pass.cx, x, w));
    pass.arena.rewind(start);
  }
  count_flops(state, state.range(0));
}

BENCHMARK(peer)->Name("linear_768/onednn")->Arg(1)->Arg(32)->Arg(512)->UseRealTime();
BENCHMARK(ours)->Name("linear_768/qkv")->Arg(1)->Arg(32)->Arg(512)->UseRealTime();

}  // namespace
}  // namespace qkv::test
