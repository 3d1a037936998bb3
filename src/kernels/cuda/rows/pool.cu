// Pooling: the first or last row of each segment, or the mean of its rows.
#include "core/rows.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {
namespace {

struct RowRange {
  int64_t begin, end;
};
__device__ RowRange pooled_rows(PoolArgs::Kind kind, const View& segments, int64_t n) {
  const int64_t first = segments.id(6 * n + 1), rows = segments.id(6 * n + 2), end = first + rows;
  if (rows == 0 || kind == PoolArgs::Kind::mean) return {first, end};
  return kind == PoolArgs::Kind::first ? RowRange{first, first + 1} : RowRange{end - 1, end};
}

template <class A>
void pool_in(const Exec& exec, const PoolArgs& a) {
  using R = typename A::Real;
  const A y(a.y), x(a.x);
  const View segments(a.segments);
  const PoolArgs::Kind kind = a.kind;
  each_pack<4>(exec, a.y.rows(), a.y.cols(), [=] __device__(int64_t n, int64_t c) {
    const RowRange rows = pooled_rows(kind, segments, n);
    R total[4] = {};
#pragma unroll A::kUnroll
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      R v[4];
      x.load(r, c, v);
      for (int i = 0; i < 4; ++i) total[i] += v[i];
    }
    for (int i = 0; i < 4; ++i)
      total[i] = rows.end > rows.begin ? total[i] / static_cast<R>(rows.end - rows.begin) : R{0};
    y.store(n, c, total);
  });
}

template <class A>
void pool_backward_in(const Exec& exec, const PoolBackwardArgs& a) {
  using R = typename A::Real;
  const A dx(a.dx.tensor), dy(a.dy);
  const View segments(a.segments);
  const PoolArgs::Kind kind = a.kind;
  if (!a.dx.add) fill(exec, {.y = a.dx.tensor, .value = 0});
  each_pack<4>(exec, a.dy.rows(), a.dy.cols(), [=] __device__(int64_t n, int64_t c) {
    const RowRange rows = pooled_rows(kind, segments, n);
    R v[4];
    dy.load(n, c, v);
    for (int i = 0; i < 4; ++i) v[i] /= static_cast<R>(rows.end - rows.begin);
    for (int64_t r = rows.begin; r < rows.end; ++r) dx.put(r, c, v, true);
  });
}

}  // namespace

void pool(const Exec& exec, const PoolArgs& a) noexcept {
  in_form(a.y, {&a.y, &a.x}, [&]<class A>(A, auto) { pool_in<A>(exec, a); });
}
void pool_backward(const Exec& exec, const PoolBackwardArgs& a) noexcept {
  if (!a.dx) return;
  in_form(a.dy, {&a.dx.tensor, &a.dy}, [&]<class A>(A, auto) { pool_backward_in<A>(exec, a); });
}

}  // namespace qkv::kernels::cuda
