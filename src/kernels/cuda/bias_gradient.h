// Bias gradients where dw is not a product of bf16 that makes them beside it: sums over the rows of dy.
#pragma once

#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

// Sums over rows. Of a piece of rows each warp of a block takes as many neighbours, in order; then the warps in order, then the
// pieces as add_pieces does.
constexpr int64_t kWarpRows = 32, kPieceRows = kWarps * kWarpRows;

template <class R, class T = R>
void sum_columns(const Exec& exec, const Tensor& x, const GradView& y) {
  constexpr int64_t kAcross = 32;
  const int64_t rows = x.rows(), columns = x.cols(), stride = x.stride(0), across = (columns + kAcross - 1) / kAcross;
  const int64_t pieces = std::max<int64_t>((rows + kPieceRows - 1) / kPieceRows, 1);
  const auto* from = x.as<T>();
  auto* partial = reinterpret_cast<R*>(exec.scratch.data());
  each_block(exec, pieces * across, [=] __device__(int64_t block) {
    __shared__ R runs[kWarps][kAcross];
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t piece = block / across, c = block % across * kAcross + lane;
    const int64_t begin = piece * kPieceRows + warp * kWarpRows, end = min(begin + kWarpRows, rows);
    R total = 0;
    if (c < columns) {
#pragma unroll 8
      for (int64_t r = begin; r < end; ++r) total += static_cast<R>(from[r * stride + c]);
    }
    runs[warp][lane] = total;
    __syncthreads();
    if (warp == 0 && c < columns) {
      for (int w = 1; w < kWarps; ++w) total += runs[w][lane];
      partial[piece * columns + c] = total;
    }
    __syncthreads();
  });
  add_pieces(exec, partial, pieces, columns, columns, [=] __device__(int64_t c, R sum) { y.put(c, sum); });
}

template <class R>
void sum_columns_of_groups(const Exec& exec, const LinearBackwardArgs& a) {
  const GradView db(a.db);
  const View dy(a.dy);
  const int64_t outputs = a.dy.cols();
  const auto* groups = a.groups.as<int32_t>();
  each_thread(exec, (a.groups.count() - 1) * outputs, [=] __device__(int64_t i) {
    const int64_t g = i / outputs, o = i % outputs;
    R total = 0;
    for (int64_t r = groups[g]; r < groups[g + 1]; ++r) total += dy.get<R>(dy.row(r) + o);
    db.put((db.view.rank == 2 ? db.view.at(g) : 0) + o, total);
  });
}

inline void bias_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  if (a.groups.defined()) {
    return in_real(a.db.tensor, [&](auto r) { sum_columns_of_groups<decltype(r)>(exec, a); });
  }
  const GradView db(a.db);
  switch (a.dy.dtype()) {
    case DType::f64:
      return sum_columns<double>(exec, a.dy, db);
    case DType::bf16:
      return sum_columns<float, __nv_bfloat16>(exec, a.dy, db);
    case DType::f16:
      return sum_columns<float, __half>(exec, a.dy, db);
    default:
      return sum_columns<float>(exec, a.dy, db);
  }
}

}  // namespace qkv::kernels::cuda
