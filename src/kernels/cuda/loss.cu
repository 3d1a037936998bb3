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
  __device__ void keep(L* to) const { write_words<kWords>(reinterpret_cast<std::byte*>(to), words); }  // shared memory
  // Spelt out: nvcc makes four stores of a uint4 here.
  __device__ void write(L* to) const {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<std::byte*>(to) + 4 * i),
                   "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3])
                   : "memory");
    }
  }
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
  // Where logits were rounded to bf16 the fast exponential is exact enough.
  static __device__ R exponential(R x) {
    if constexpr (sizeof(L) == 2) return fast_exp(x);
    return exp(x);
  }
  // The packs of this thread: f(first entry, capped logits). What lies past the vocabulary is -inf. Some packs are called for
  // before the first is used, since f may write where it read. `copy`, if there, gets them as they are.
  template <class F>
  __device__ void each(const L* row, L* copy, F f) const {
    constexpr int kAtOnce = sizeof(L) == 2 ? 4 : 1, kStep = kPack * kThreads;
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
        if (copy != nullptr) packs[u].keep(copy + v);
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

  // The gradients of this thread's logits, read from `from`: those of the row's loss, whose target is not ignored or is.
  __device__ void gradients(const L* from, L* to, R lse, int32_t target) const {
    const bool ignored = target == ignore;
    const R weight = 1 + 2 * z_loss * lse, everywhere = smoothing / static_cast<R>(vocabulary),
            on_target = 1 - smoothing + everywhere;
    each(from, nullptr, [&](int32_t v, const R(&x)[kPack]) {
      LogitPack<L> out;
      R d[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        d[i] = exponential(x[i] - lse) * weight - (v + i == target ? on_target : everywhere);
      }
      if (cap > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) d[i] *= 1 - x[i] / cap * (x[i] / cap);
      }
#pragma unroll
      for (int i = 0; i < kPack; ++i) d[i] = ignored ? R{0} : d[i];
      out.set(d);
      out.write(to + v);
    });
  }
};

// With `gradients` logits become theirs. A row waits in shared memory for that, if two fit into a processor's.
template <class R, class L>
void losses_of(const Exec& exec, const CrossEntropyArgs& a, const Tensor& logits, int64_t first, bool gradients) {
  constexpr int64_t kMostShared = 112 << 10;
  const HeadRule<R, L> rule(a.rule, logits);
  const int64_t row_bytes = padded(logits.dim(1)) * static_cast<int64_t>(sizeof(L));
  const bool waits = gradients && row_bytes <= kMostShared;
  L* numbers = logits.as<L>();
  const int32_t* targets = a.targets.as<int32_t>() + first;
  R *losses = a.losses.as<R>() + first, *lses = a.lse.as<R>() + first;
  const auto find = [=] __device__(int64_t r) {
    extern __shared__ __align__(16) unsigned char shared[];
    L *row = numbers + r * rule.stride, *copy = waits ? reinterpret_cast<L*>(shared) : nullptr;
    const int32_t target = targets[r];
    const R at_target = target != rule.ignore ? rule.capped(static_cast<R>(row[target])) : R{0};
    R highest = std::numeric_limits<R>::lowest(), total = 0, sum = 0;
    rule.each(row, copy, [&](int32_t v, const R(&x)[kPack]) {
      R most = highest;
#pragma unroll
      for (int i = 0; i < kPack; ++i) most = x[i] > most ? x[i] : most;
      total *= rule.exponential(highest - most);
      highest = most;
#pragma unroll
      for (int i = 0; i < kPack; ++i) total += rule.exponential(x[i] - highest);
      if (rule.smoothing > 0) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) sum += v + i < rule.vocabulary ? x[i] : R{0};
      }
    });
    const R most = block_max(highest);
    total = block_sum(total * rule.exponential(highest - most));
    if (rule.smoothing > 0) sum = block_sum(sum);
    const R lse = most + log(total);
    if (gradients) rule.gradients(waits ? copy : row, row, lse, target);
    if (threadIdx.x != 0) return;
    R loss = 0;
    if (target != rule.ignore) {
      loss = (1 - rule.smoothing) * (lse - at_target) + rule.z_loss * lse * lse;
      if (rule.smoothing > 0) loss += rule.smoothing * (lse - sum / static_cast<R>(rule.vocabulary));
    }
    losses[r] = loss;
    lses[r] = lse;
  };
  each_block(exec, logits.dim(0), find, waits ? static_cast<size_t>(row_bytes) : 0);
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
  each_block(exec, logits.dim(0), [=] __device__(int64_t r) {
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
