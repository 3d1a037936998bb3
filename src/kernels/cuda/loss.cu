// Pooling, and the cross-entropy with the output projection.
//
// Logits of bf16 operands are bf16, rounded once by the product; all others are as wide as the losses. Forward reads them
// once: maximum and sum together. Where the op keeps them for backward, forward leaves their gradients there, of the sum of
// all losses; what the loss is multiplied by joins in the products of backward. Elsewhere they exist for some rows at a time.
#include <cmath>
#include <limits>

#include "core/rows.h"
#include "kernels/cuda/formulas.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/tma.h"

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

// --- cross-entropy ---------------------------------------------------------------------------------------------------

Operand rows_of(const Tensor& t, int64_t first) {
  return {.data = t.data() + first * t.stride(0) * size_of(t.dtype()), .dtype = t.dtype(), .row = t.stride(0), .k = 1};
}
Operand transposed(Operand o) {
  std::swap(o.row, o.k);
  return o;
}

constexpr int kPack = 8;  // logits of a thread side by side
template <class L>
struct alignas(16) LogitPack {
  static constexpr int kWords = kPack * sizeof(L) / 4;
  uint32_t words[kWords];

  __device__ void read(const L* from) { read_words<kWords>(reinterpret_cast<const std::byte*>(from), words); }
  __device__ void write(L* to) const { write_words<kWords>(reinterpret_cast<std::byte*>(to), words); }
  template <class R>
  __device__ R get(int i) const {
    return static_cast<R>(reinterpret_cast<const L*>(words)[i]);
  }
  template <class R>
  __device__ void set(const R (&x)[kPack]) {
    if constexpr (sizeof(L) == 2) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
        words[i] = *reinterpret_cast<const uint32_t*>(&pair);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) reinterpret_cast<L*>(words)[i] = static_cast<L>(x[i]);
    }
  }
};

int64_t padded(int64_t vocabulary) {  // rows at multiples of 128 bytes, also of bf16
  constexpr int64_t kLine = 64;
  return (vocabulary + kLine - 1) / kLine * kLine;
}
DType logit_type(const Tensor& losses, const Tensor& x, const Tensor& w) {
  return x.dtype() == DType::bf16 && w.dtype() == DType::bf16 ? DType::bf16 : losses.dtype();
}

// Memory for logits [rows, V] with whole lines apart: what the op gave, or else as many rows as fit into
// scratch, which follows from the vocabulary alone. The last 16th of scratch is for sums over rows.
struct Logits {
  Tensor all;
  Exec sums;

  Logits(const Exec& exec, const Tensor& given, DType type, int64_t vocabulary) : sums(exec) {
    const int64_t bytes = exec.scratch.count(), kept = bytes / 16 / 256 * 256, columns = padded(vocabulary);
    sums.scratch = exec.scratch.view({bytes}).slice(0, bytes - kept, kept);
    const int64_t fit = std::max<int64_t>((bytes - kept) / (columns * size_of(type)), 1);
    all = given.defined()
              ? given
              : Tensor(*exec.device, exec.scratch.data(), Format(type), {fit > 128 ? fit / 128 * 128 : fit, columns});
    all = all.slice(1, 0, vocabulary);
  }
};

void find_logits(const Exec& exec, const Tensor& x, const Tensor& w, const Tensor& b, int64_t first,
                 const Tensor& out) {
  product(exec, {.a = rows_of(x, first),
                 .b = rows_of(w, 0),
                 .m = out.dim(0),
                 .n = w.dim(0),
                 .k = x.cols(),
                 .out = View(out),
                 .bias = View(b),
                 .out_columns = std::min(padded(w.dim(0)), out.stride(0))});
}

constexpr int kHeadThreads = 1024;  // of a row

template <class R, class L>
struct HeadRule {
  R smoothing, z_loss, cap;
  int32_t vocabulary;
  int64_t ignore, stride;

  HeadRule(const CrossEntropyRule& rule, const Tensor& logits)
      : smoothing(static_cast<R>(rule.smoothing)),
        z_loss(static_cast<R>(rule.z_loss)),
        cap(static_cast<R>(rule.softcap)),
        vocabulary(static_cast<int32_t>(logits.dim(1))),
        ignore(rule.ignore),
        stride(logits.stride(0)) {}

  __device__ R capped(R x) const { return cap > 0 ? cap * tanh(x / cap) : x; }

  // exp(x - shift). Where logits were rounded to bf16 the fast exponential is exact enough.
  struct Exponential {
    R shift;

    __device__ explicit Exponential(R s) : shift(sizeof(L) == 2 ? -s * kLog2e : s) {}
    __device__ R operator()(R x) const {
      if constexpr (sizeof(L) == 2) return fast_exp2(fma(x, kLog2e, shift));
      return exp(x - shift);
    }
    static constexpr R kLog2e = static_cast<R>(1.44269504088896341);
  };

  // The packs of this thread: f(first entry, capped logits). What lies past the vocabulary is -inf. Some packs are called for
  // before the first is used, since f may write where it read.
  template <class F>
  __device__ __forceinline__ void each(const L* row, F f) const {
    constexpr int kAtOnce = sizeof(L) == 2 ? 4 : 1, kStep = kPack * kHeadThreads;
    for (int32_t first = kPack * static_cast<int32_t>(threadIdx.x); first < vocabulary; first += kAtOnce * kStep) {
      LogitPack<L> packs[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u * kStep < vocabulary) packs[u].read(row + first + u * kStep);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const int32_t v = first + u * kStep;
        if (v >= vocabulary) break;
        R x[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i) x[i] = packs[u].template get<R>(i);
        if (cap > 0) {
#pragma unroll
          for (int i = 0; i < kPack; ++i) x[i] = capped(x[i]);
        }
        if (v + kPack > vocabulary) {
#pragma unroll
          for (int i = 0; i < kPack; ++i) x[i] = v + i < vocabulary ? x[i] : -static_cast<R>(INFINITY);
        }
        f(v, x);
      }
    }
  }

  // Of a row: log of the sum of all exponentials, and the sum of all logits where smoothing needs it.
  struct Sums {
    R lse, all;
  };
  __device__ __forceinline__ Sums sums(const L* row) const {
    constexpr int kWarpsHere = kHeadThreads / 32;
    R highest = std::numeric_limits<R>::lowest(), total = 0, all = 0;
    each(row, [&](int32_t v, const R(&x)[kPack]) {
      R most = highest;
#pragma unroll
      for (int i = 0; i < kPack; ++i) most = x[i] > most ? x[i] : most;
      const Exponential from_most(most);
      total *= from_most(highest);
      highest = most;
#pragma unroll
      for (int i = 0; i < kPack; ++i) total += from_most(x[i]);
      if (smoothing > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) all += v + i < vocabulary ? x[i] : R{0};
      }
    });
    const R most = block_max<kWarpsHere>(highest);
    total = block_sum<kWarpsHere>(total * Exponential(most)(highest));
    if (smoothing > 0) all = block_sum<kWarpsHere>(all);
    return {most + log(total), all};
  }
  __device__ R loss(int32_t target, R at_target, Sums of) const {
    if (target == ignore) return 0;
    R loss = (1 - smoothing) * (of.lse - at_target) + z_loss * of.lse * of.lse;
    if (smoothing > 0) loss += smoothing * (of.lse - of.all / static_cast<R>(vocabulary));
    return loss;
  }

  // The gradients of this thread's logits, read from `from`: those of the row's loss; zeros if its target is ignored.
  __device__ __forceinline__ void gradients(const L* from, L* to, R lse, int32_t target) const {
    const bool ignored = target == ignore;
    const R weight = 1 + 2 * z_loss * lse, everywhere = smoothing / static_cast<R>(vocabulary);
    const Exponential from_lse(lse);
    each(from, [&](int32_t v, const R(&x)[kPack]) {
      R d[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i) d[i] = from_lse(x[i]) * weight - everywhere;
      if (static_cast<uint32_t>(target - v) < kPack) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] = v + i == target ? d[i] - (1 - smoothing) : d[i];
      }
      if (cap > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] *= 1 - x[i] / cap * (x[i] / cap);
      }
      if (ignored) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] = 0;
      }
      LogitPack<L> out;
      out.set(d);
      out.write(to + v);
    });
  }
};

// Logits of some rows and what becomes of them.
template <class R, class L>
struct HeadRows {
  L* logits;
  const int32_t* targets;
  R *losses, *lses;
};

template <class F>
__global__ void __launch_bounds__(kHeadThreads) run_head_rows(int64_t count, const __grid_constant__ F f) {
  let_next_start();
  wait_for_last();
  for (int64_t r = blockIdx.x; r < count; r += gridDim.x) f(r);
}
template <class F>
void each_head_row(const Exec& exec, int64_t count, const F& f) {
  if (count <= 0) return;
  launch(exec, run_head_rows<F>, static_cast<unsigned>(std::min(count, kMostBlocks)), kHeadThreads, 0, count, f);
}

// Losses, and logits become their gradients, all in shared memory: the copy engine brings the next row while this one is
// looked at, and takes it back. On Hopper, where two rows fit.
template <class R, class L>
__global__ void __launch_bounds__(kHeadThreads, 1)
    losses_and_gradients(const __grid_constant__ HeadRule<R, L> rule, const __grid_constant__ HeadRows<R, L> of,
                         int64_t count, int bytes) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char rows[];
  __shared__ uint64_t barriers[2];
  const uint32_t here = shared_address(rows), barrier = shared_address(barriers);
  const bool copies = threadIdx.x == 0;
  const auto load = [&](int64_t r, int buffer) {
    barrier_expect(barrier + 8 * buffer, static_cast<uint32_t>(bytes));
    load_bytes(here + buffer * bytes, of.logits + r * rule.stride, bytes, barrier + 8 * buffer);
  };
  let_next_start();
  wait_for_last();
  if (copies) {
    barrier_init(barrier, 1);
    barrier_init(barrier + 8, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (blockIdx.x < count) load(blockIdx.x, 0);
  }
  __syncthreads();
  int turn = 0;
  for (int64_t r = blockIdx.x; r < count; r += gridDim.x, ++turn) {
    const int buffer = turn % 2;
    if (copies) {
      wait_for_copies_out();
      if (r + gridDim.x < count) load(r + gridDim.x, 1 - buffer);
    }
    barrier_wait(barrier + 8 * buffer, turn / 2 % 2);
    L* row = reinterpret_cast<L*>(rows + static_cast<ptrdiff_t>(buffer) * bytes);
    const int32_t target = of.targets[r];
    const R at_target = target != rule.ignore ? rule.capped(static_cast<R>(row[target])) : R{0};
    const auto sums = rule.sums(row);
    rule.gradients(row, row, sums.lse, target);
    fence_for_copies();
    __syncthreads();
    if (copies) {
      store_bytes(of.logits + r * rule.stride, here + buffer * bytes, bytes);
      of.losses[r] = rule.loss(target, at_target, sums);
      of.lses[r] = sums.lse;
    }
  }
  if (copies) wait_for_copies_out();
#endif
}

template <class R, class L>
bool in_shared_memory(const Exec& exec, const HeadRule<R, L>& rule, const HeadRows<R, L>& rows, int64_t count) {
  constexpr int64_t kMostShared = 226 << 10;
  const int64_t bytes = padded(rule.vocabulary) * static_cast<int64_t>(sizeof(L));
  const bool fits = hopper() && 2 * bytes <= kMostShared && rule.stride * static_cast<int64_t>(sizeof(L)) >= bytes &&
                    rule.stride % kPack == 0 && reinterpret_cast<uintptr_t>(rows.logits) % 16 == 0;
  if (!fits || cudaFuncSetAttribute(losses_and_gradients<R, L>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(2 * bytes)) != cudaSuccess) {
    return false;
  }
  const auto grid = static_cast<unsigned>(std::min<int64_t>(count, multiprocessors()));
  launch(exec, losses_and_gradients<R, L>, grid, kHeadThreads, static_cast<size_t>(2 * bytes), rule, rows, count,
         static_cast<int>(bytes));
  return true;
}

// With `gradients` logits become theirs.
template <class R, class L>
void losses_of(const Exec& exec, const CrossEntropyArgs& a, const Tensor& logits, int64_t first, bool gradients) {
  const HeadRule<R, L> rule(a.rule, logits);
  const HeadRows<R, L> rows{logits.as<L>(), a.targets.as<int32_t>() + first, a.losses.as<R>() + first,
                            a.lse.as<R>() + first};
  if (logits.dim(0) == 0) return;
  if constexpr (sizeof(L) == 2) {
    if (gradients && in_shared_memory(exec, rule, rows, logits.dim(0))) return;
  }
  each_head_row(exec, logits.dim(0), [=] __device__(int64_t r) {
    L* row = rows.logits + r * rule.stride;
    const int32_t target = rows.targets[r];
    const R at_target = target != rule.ignore ? rule.capped(static_cast<R>(row[target])) : R{0};
    const auto sums = rule.sums(row);
    if (gradients) rule.gradients(row, row, sums.lse, target);
    if (threadIdx.x != 0) return;
    rows.losses[r] = rule.loss(target, at_target, sums);
    rows.lses[r] = sums.lse;
  });
}

template <class R, class L>
void cross_entropy_as(const Exec& exec, const CrossEntropyArgs& a) {
  const Logits logits(exec, a.logits, logit_type(a.losses, a.x, a.w), a.w.dim(0));
  const int64_t at_once = logits.all.dim(0);
  for (int64_t first = 0; first < a.x.rows(); first += at_once) {
    const Tensor some = logits.all.slice(0, 0, std::min(at_once, a.x.rows() - first));
    find_logits(exec, a.x, a.w, a.b, first, some);
    losses_of<R, L>(exec, a, some, first, a.logits.defined());
  }
}

// Logits become their gradients.
template <class R, class L>
void turn_into_gradients(const Exec& exec, const CrossEntropyBackwardArgs& a, const Tensor& logits, int64_t first) {
  const HeadRule<R, L> rule(a.rule, logits);
  L* numbers = logits.as<L>();
  const int32_t* targets = a.targets.as<int32_t>() + first;
  const R* lses = a.lse.as<R>() + first;
  each_head_row(exec, logits.dim(0), [=] __device__(int64_t r) {
    L* row = numbers + r * rule.stride;
    rule.gradients(row, row, lses[r], targets[r]);
  });
}

template <class R, class L>
void cross_entropy_backward_as(const Exec& exec, const CrossEntropyBackwardArgs& a) {
  const Logits logits(exec, a.logits, logit_type(a.lse, a.x, a.w), a.w.dim(0));
  const int64_t vocabulary = a.w.dim(0), all = a.x.rows(), at_once = std::min(logits.all.dim(0), kLogitRows);
  const bool kept = a.logits.defined() && a.kept;
  const auto dx_of = [&](const Tensor& gradients, int64_t first) {
    product(exec, {.a = rows_of(gradients, 0),
                   .b = transposed(rows_of(a.w, 0)),
                   .m = gradients.dim(0),
                   .n = a.x.cols(),
                   .k = vocabulary,
                   .out = View(a.dx.tensor.slice(0, first, gradients.dim(0))),
                   .scale = View(a.dloss),
                   .factor = a.factor,
                   .add = a.dx.add});
  };
  if (kept && a.dx) dx_of(logits.all, 0);
  int64_t first = 0;
  do {  // once even for no rows: the gradient of an unused head is zero
    const int64_t rows = std::min(at_once, all - first);
    const Tensor gradients = logits.all.slice(0, kept ? first : 0, rows);
    if (!kept) {
      find_logits(exec, a.x, a.w, a.b, first, gradients);
      turn_into_gradients<R, L>(exec, a, gradients, first);
      if (a.dx) dx_of(gradients, first);
    }
    if (a.dw) {
      product(exec, {.a = transposed(rows_of(gradients, 0)),
                     .b = transposed(rows_of(a.x, first)),
                     .m = vocabulary,
                     .n = a.x.cols(),
                     .k = rows,
                     .out = View(a.dw.tensor),
                     .scale = View(a.dloss),
                     .factor = a.factor,
                     .add = a.dw.add || first > 0});
    }
    if (a.db) {
      GradView db(a.db);
      db.add = db.add || first > 0;
      const L* g = gradients.as<L>();
      const int64_t stride = gradients.stride(0);
      const R *dloss = a.dloss.as<R>(), factor = static_cast<R>(a.factor);
      sum_rows<R>(
          logits.sums, rows, vocabulary,
          [=] __device__(int64_t r, int64_t v) { return static_cast<R>(g[r * stride + v]); },
          [=] __device__(int64_t v, R s) { db.put(v, s * (*dloss * factor)); });
    }
    first += rows;
  } while (first < all);
}

// Calls f with the types of the losses and of the logits.
template <class F>
void in_types(const Tensor& losses, const Tensor& x, const Tensor& w, F&& f) {
  if (losses.dtype() == DType::f64) return f(double{}, double{});
  if (logit_type(losses, x, w) == DType::bf16) return f(float{}, __nv_bfloat16{});
  f(float{}, float{});
}

}  // namespace

void pool(const Exec& exec, const PoolArgs& a) noexcept {
  in_form(a.y, {&a.y, &a.x}, [&]<class A>(A, auto) { pool_in<A>(exec, a); });
}
void pool_backward(const Exec& exec, const PoolBackwardArgs& a) noexcept {
  if (!a.dx) return;
  in_form(a.dy, {&a.dx.tensor, &a.dy}, [&]<class A>(A, auto) { pool_backward_in<A>(exec, a); });
}
void cross_entropy(const Exec& exec, const CrossEntropyArgs& a) noexcept {
  in_types(a.losses, a.x, a.w,
           [&](auto real, auto logit) { cross_entropy_as<decltype(real), decltype(logit)>(exec, a); });
}
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a) noexcept {
  in_types(a.lse, a.x, a.w,
           [&](auto real, auto logit) { cross_entropy_backward_as<decltype(real), decltype(logit)>(exec, a); });
}

}  // namespace qkv::kernels::cuda
