// Pooling, and the cross-entropy with the output projection: logits exist for some rows at a time, in scratch.
#include <cmath>

#include "core/rows.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product.h"

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

template <class R>
void pool_as(const Exec& exec, const PoolArgs& a) {
  const View y(a.y), x(a.x), segments(a.segments);
  const PoolArgs::Kind kind = a.kind;
  const int64_t width = a.y.cols();
  each_thread(exec, a.y.count(), [=] __device__(int64_t i) {
    const int64_t n = i / width, c = i % width;
    const RowRange rows = pooled_rows(kind, segments, n);
    R total = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) total += x.get<R>(x.row(r) + c);
    y.set(y.row(n) + c, rows.end > rows.begin ? total / static_cast<R>(rows.end - rows.begin) : R{0});
  });
}

template <class R>
void pool_backward_as(const Exec& exec, const PoolBackwardArgs& a) {
  const View dx(a.dx.tensor), dy(a.dy), segments(a.segments);
  const PoolArgs::Kind kind = a.kind;
  if (!a.dx.add) fill(exec, {.y = a.dx.tensor, .value = 0});
  const int64_t width = a.dy.cols();
  each_thread(exec, a.dy.count(), [=] __device__(int64_t i) {
    const int64_t n = i / width, c = i % width;
    const RowRange rows = pooled_rows(kind, segments, n);
    const R each = dy.get<R>(dy.row(n) + c) / static_cast<R>(rows.end - rows.begin);
    for (int64_t r = rows.begin; r < rows.end; ++r) dx.put(dx.row(r) + c, each, true);
  });
}

// How scratch is cut: logits of as many rows as fit, their gradients, and room for sums over rows. It follows from the
// vocabulary alone, since the order of sums over rows does.
struct Chunks {
  int64_t rows = 0;
  std::byte *logits = nullptr, *gradients = nullptr;
  Exec sums;

  Chunks(const Exec& exec, int64_t vocabulary, DType real, DType gradient) : sums(exec) {
    const int64_t all = exec.scratch.count(), kept = all / 16;
    const int64_t row_bytes = vocabulary * (size_of(real) + size_of(gradient));
    rows = std::max<int64_t>((all - kept - 512) / row_bytes, 1);
    logits = exec.scratch.data();
    gradients = logits + (rows * vocabulary * size_of(real) + 255) / 256 * 256;
    sums.scratch = exec.scratch.view({all}).slice(0, all - kept, kept);
  }
};

template <class R>
constexpr DType kReal = sizeof(R) == 8 ? DType::f64 : DType::f32;

Operand rows_of(const Tensor& t, int64_t first) {
  return {.data = t.data() + first * t.stride(0) * size_of(t.dtype()), .dtype = t.dtype(), .row = t.stride(0), .k = 1};
}
Operand transposed(Operand o) {
  std::swap(o.row, o.k);
  return o;
}

void find_logits(const Exec& exec, const Tensor& x, const Tensor& w, const Tensor& b, int64_t first,
                 const Tensor& out) {
  product(exec, {.a = rows_of(x, first),
                 .b = rows_of(w, 0),
                 .m = out.dim(0),
                 .n = w.dim(0),
                 .k = x.cols(),
                 .out = View(out),
                 .bias = View(b)});
}

template <class R>
__device__ R capped(R x, R cap) {
  return cap > 0 ? cap * tanh(x / cap) : x;
}

template <class R>
void cross_entropy_as(const Exec& exec, const CrossEntropyArgs& a) {
  const View losses(a.losses), lses(a.lse), targets(a.targets);
  const int64_t vocabulary = a.w.dim(0), ignore = a.rule.ignore;
  const R smoothing = static_cast<R>(a.rule.smoothing), z_loss = static_cast<R>(a.rule.z_loss),
          cap = static_cast<R>(a.rule.softcap);
  const Chunks chunks(exec, vocabulary, kReal<R>, a.w.dtype());
  const auto* logits = reinterpret_cast<const R*>(chunks.logits);
  for (int64_t first = 0; first < a.x.rows(); first += chunks.rows) {
    const int64_t rows = std::min(chunks.rows, a.x.rows() - first);
    find_logits(exec, a.x, a.w, a.b, first, Tensor(a.x.device(), chunks.logits, kReal<R>, {rows, vocabulary}));
    each_block(exec, rows, [=] __device__(int64_t r) {
      const R* row = logits + r * vocabulary;
      R highest = -INFINITY, total = 0, sum = 0;
      for (int64_t v = threadIdx.x; v < vocabulary; v += kThreads) {
        const R x = capped(row[v], cap);
        highest = x > highest ? x : highest;
        sum += x;
      }
      highest = block_max(highest);
      for (int64_t v = threadIdx.x; v < vocabulary; v += kThreads) total += exp(capped(row[v], cap) - highest);
      total = block_sum(total);
      sum = block_sum(sum);
      if (threadIdx.x != 0) return;
      const R lse = highest + log(total);
      const int64_t target = targets.id(first + r);
      R loss = 0;
      if (target != ignore) {
        loss = (1 - smoothing) * (lse - capped(row[target], cap)) + z_loss * lse * lse;
        if (smoothing > 0) loss += smoothing * (lse - sum / static_cast<R>(vocabulary));
      }
      losses.set(first + r, loss);
      lses.set(first + r, lse);
    });
  }
}

template <class R>
void cross_entropy_backward_as(const Exec& exec, const CrossEntropyBackwardArgs& a) {
  const View lses(a.lse), targets(a.targets), dloss(a.dloss);
  const int64_t vocabulary = a.w.dim(0), ignore = a.rule.ignore;
  const R smoothing = static_cast<R>(a.rule.smoothing), z_loss = static_cast<R>(a.rule.z_loss),
          cap = static_cast<R>(a.rule.softcap), factor = static_cast<R>(a.factor);
  const DType type = kReal<R> == DType::f64 ? DType::f64 : a.w.dtype();  // of the gradients, as the products take them
  const Chunks chunks(exec, vocabulary, kReal<R>, type);
  const auto* logits = reinterpret_cast<const R*>(chunks.logits);
  for (int64_t first = 0; first < a.x.rows(); first += chunks.rows) {
    const int64_t rows = std::min(chunks.rows, a.x.rows() - first);
    find_logits(exec, a.x, a.w, a.b, first, Tensor(a.x.device(), chunks.logits, kReal<R>, {rows, vocabulary}));
    const Tensor gradients(a.x.device(), chunks.gradients, type, {rows, vocabulary});
    const View g(gradients);
    each_thread(exec, rows * vocabulary, [=] __device__(int64_t i) {
      const int64_t r = i / vocabulary, v = i % vocabulary, target = targets.id(first + r);
      R d = 0;
      if (target != ignore) {
        const R lse = lses.get<R>(first + r), x = capped(logits[i], cap);
        const R p = exp(x - lse) * (1 + 2 * z_loss * lse);
        const R wanted = (v == target ? 1 - smoothing : R{0}) + smoothing / static_cast<R>(vocabulary);
        const R slope = cap > 0 ? 1 - x / cap * (x / cap) : R{1};
        d = dloss.get<R>(0) * factor * (p - wanted) * slope;
      }
      g.set(i, d);
    });
    if (a.dx) {
      product(exec, {.a = rows_of(gradients, 0),
                     .b = transposed(rows_of(a.w, 0)),
                     .m = rows,
                     .n = a.x.cols(),
                     .k = vocabulary,
                     .out = View(a.dx.tensor.slice(0, first, rows)),
                     .add = a.dx.add});
    }
    if (a.dw) {
      product(exec, {.a = transposed(rows_of(gradients, 0)),
                     .b = transposed(rows_of(a.x, first)),
                     .m = vocabulary,
                     .n = a.x.cols(),
                     .k = rows,
                     .out = View(a.dw.tensor),
                     .add = a.dw.add || first > 0});
    }
    if (a.db) {
      GradView db(a.db);
      db.add = db.add || first > 0;
      sum_rows<R>(
          chunks.sums, rows, vocabulary, [=] __device__(int64_t r, int64_t v) { return g.get<R>(r * vocabulary + v); },
          [=] __device__(int64_t v, R s) { db.put(v, s); });
    }
  }
}

}  // namespace

void pool(const Exec& exec, const PoolArgs& a) noexcept {
  in_real(a.y, [&](auto r) { pool_as<decltype(r)>(exec, a); });
}
void pool_backward(const Exec& exec, const PoolBackwardArgs& a) noexcept {
  if (a.dx) in_real(a.dy, [&](auto r) { pool_backward_as<decltype(r)>(exec, a); });
}
void cross_entropy(const Exec& exec, const CrossEntropyArgs& a) noexcept {
  in_real(a.losses, [&](auto r) { cross_entropy_as<decltype(r)>(exec, a); });
}
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a) noexcept {
  in_real(a.lse, [&](auto r) { cross_entropy_backward_as<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda
