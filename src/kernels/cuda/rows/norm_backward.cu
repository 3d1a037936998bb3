// Gradients of layer_norm and rms_norm, one pass over the rows; formulas in ops/layer_norm.cpp and ops/rms_norm.cpp.
//
// A block takes a piece of the rows, some at once, writes their dx, and adds up dw and db: those of each row at once in
// order, then these sums in order, then the pieces as add_pieces does.
#include <tuple>

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/rows/norm.h"

namespace qkv::kernels::cuda {
namespace {

template <class X, class Y, class W>
struct NormBackward {
  using R = typename X::Real;
  X dx, x;
  Y dy;
  RoundedForm<X> also, rounded;  // added to dy; dx once more, dropped. Or absent
  Kept kept;
  W w;
  bool add, has_also;
  const R *mean, *rstd;  // mean is absent for rms_norm
  R offset;
  int64_t rows, width;
  R* partial;  // [pieces, 2, width] sums of dw and db, or absent

  __device__ int64_t padded() const { return (width + kRowPack - 1) / kRowPack * kRowPack; }
};

// mean and rstd of a row.
template <class R>
struct Statistics {
  R mean = 0, rstd = 0;

  template <class N>
  __device__ Statistics(const N& n, int64_t r) {
    if (r >= n.rows) return;
    if (n.mean != nullptr) mean = n.mean[r];
    rstd = n.rstd[r];
  }
};

// The sums over columns that dx needs, with g = dy (w + offset): of g and of g xhat; then their means.
template <int T, class R>
struct RowSums {
  R g = 0, gx = 0;

  // Of one pack; xhat comes back.
  __device__ void add(const Statistics<R>& of, const R (&x)[kRowPack], const R (&dy)[kRowPack], const R (&u)[kRowPack],
                      R (&xhat)[kRowPack]) {
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) {
      xhat[i] = (x[i] - of.mean) * of.rstd;
      const R part = dy[i] * u[i];
      g += part;
      gx = fma(part, xhat[i], gx);
    }
  }
  __device__ void finish(bool centred, int64_t width) {
    g = centred ? row_sum<T>(g) / static_cast<R>(width) : R{0};
    gx = row_sum<T>(gx) / static_cast<R>(width);
  }
  // dx, or old + dx.
  __device__ void gradient(const Statistics<R>& of, const R (&x)[kRowPack], const R (&dy)[kRowPack],
                           const R (&u)[kRowPack], bool add, R (&out)[kRowPack]) const {
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) {
      const R xhat = (x[i] - of.mean) * of.rstd, d = fma(-xhat, gx, dy[i] * u[i] - g);
      out[i] = add ? fma(of.rstd, d, out[i]) : of.rstd * d;
    }
  }
};

// partial = the sums of the rows at once, [rows at once][2][width, whole packs] in shared memory, in order.
template <int T, class N>
__device__ void write_piece(const N& n, const typename N::R* sums) {
  __syncthreads();
  const int64_t padded = n.padded();
  for (int64_t c = threadIdx.x; c < 2 * n.width; c += kRowBlock) {
    const auto* from = sums + (c < n.width ? c : padded + c - n.width);
    auto sum = from[0];
    for (int64_t k = 1; k < kRowBlock / T; ++k) sum += from[k * 2 * padded];
    n.partial[blockIdx.x * 2 * n.width + c] = sum;
  }
}

template <class R>
struct alignas(16) Four {
  R v[kRowPack];
};

// Any rows; dw and db grow in shared memory.
template <int T, class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock) norm_backward_pieces(const __grid_constant__ NormBackward<X, Y, W> n) {
  using R = typename X::Real;
  unsigned char* const raw = dynamic_shared();
  const int64_t padded = n.padded();
  R* const dw = reinterpret_cast<R*>(raw) + threadIdx.x / T * 2 * padded;
  R* const db = dw + padded;
  const bool sums = n.partial != nullptr;
  for (int64_t c = threadIdx.x % T; sums && c < 2 * padded; c += T) dw[c] = 0;
  __syncthreads();
  wait_for_last();
  constexpr int64_t kAtOnce = kRowBlock / T;
  for (int64_t r = blockIdx.x * kAtOnce + threadIdx.x / T; r < n.rows; r += gridDim.x * kAtOnce) {
    const RowPart<X, T> x(n.x, r, n.width);
    const RowPart<Y, T> dy(n.dy, r, n.width);
    const Statistics<R> of(n, r);
    RowSums<T, R> means;
    const auto whole = [&](int64_t c, const R(&part)[kRowPack], R(&sum)[kRowPack]) {
      R more[kRowPack] = {};
      if (n.has_also) n.also.load(r, c, more);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) sum[i] = n.has_also ? part[i] + more[i] : part[i];
    };
    x.each_with(dy, [&](int64_t c, const R(&of_x)[kRowPack], const R(&part)[kRowPack]) {
      R u[kRowPack], xhat[kRowPack], of_dy[kRowPack];
      whole(c, part, of_dy);
      load_factors(n.w, c, n.offset, u);
      means.add(of, of_x, of_dy, u, xhat);
      if (!sums) return;
      Four<R>&to_w = *reinterpret_cast<Four<R>*>(dw + c), &to_b = *reinterpret_cast<Four<R>*>(db + c);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        to_w.v[i] = fma(of_dy[i], xhat[i], to_w.v[i]);
        to_b.v[i] += of_dy[i];
      }
    });
    if (!n.dx) continue;
    means.finish(n.mean != nullptr, n.width);
    x.each_with(dy, [&](int64_t c, const R(&of_x)[kRowPack], const R(&part)[kRowPack]) {
      R u[kRowPack], out[kRowPack], of_dy[kRowPack];
      whole(c, part, of_dy);
      load_factors(n.w, c, n.offset, u);
      if (n.add) n.dx.load(r, c, out);
      means.gradient(of, of_x, of_dy, u, n.add, out);
      n.dx.store(r, c, out);
      if (n.kept) n.kept.apply(r, c, out);
      if (n.rounded) n.rounded.store(r, c, out);
    });
  }
  if (sums) write_piece<T>(n, reinterpret_cast<const R*>(raw));
}

// Rows in packs, up to kKept of them a thread. They pass through shared memory: a thread calls for its own packs of the next
// row while it works on this one, and nobody else reads them. Its parts of dw and db stay in registers.
template <int T, class X, class Y>
struct Stages {
  template <class A>
  using Chunk = typename A::template Raw<kRowPack>;
  static constexpr int kXBytes = sizeof(Chunk<X>), kPackBytes = kXBytes + sizeof(Chunk<Y>), kStages = 2;
  static constexpr int kAlsoBytes = sizeof(Chunk<RoundedForm<X>>);
  static constexpr int packs(int64_t width) { return static_cast<int>((width + kRowPack * T - 1) / (kRowPack * T)); }
  static constexpr int bytes(int64_t width, bool old, bool also) {
    return packs(width) * kRowBlock * (kPackBytes + (old ? kXBytes : 0) + (also ? kAlsoBytes : 0)) * kStages;
  }

  unsigned char* start;  // [stage][pack][x, dy][thread], then [stage][pack][old dx][thread], the same of `also`
  int packs_each;
  bool has_old;
  int stage_bytes = packs_each * kRowBlock * kPackBytes, old_bytes = has_old ? packs_each * kRowBlock * kXBytes : 0;

  __device__ unsigned char* x(int stage, int s) const {
    return start + stage * stage_bytes + s * kRowBlock * kPackBytes + threadIdx.x * kXBytes;
  }
  __device__ unsigned char* dy(int stage, int s) const {
    return start + stage * stage_bytes + s * kRowBlock * kPackBytes + kRowBlock * kXBytes +
           threadIdx.x * sizeof(Chunk<Y>);
  }
  __device__ unsigned char* old(int stage, int s) const {
    return start + kStages * stage_bytes + stage * old_bytes + (s * kRowBlock + threadIdx.x) * kXBytes;
  }
  __device__ unsigned char* also(int stage, int s) const {
    return start + kStages * (stage_bytes + old_bytes) +
           ((stage * packs_each + s) * kRowBlock + threadIdx.x) * kAlsoBytes;
  }
  template <class A>
  static __device__ void call(unsigned char* to, const A& row, int c) {
    fetch_chunk<sizeof(Chunk<A>)>(shared_address(to), row.address(0, c));
  }
  // Spelt out: nvcc reads a chunk word by word, and then threads meet in the banks.
  template <class A>
  static __device__ void load(const unsigned char* from, const A& rows, float (&v)[kRowPack]) {
    Chunk<A> chunk;
    auto& w = chunk.words;
    if constexpr (sizeof(chunk) == 16) {
      const uint4 four = shared_uint4(shared_address(from));
      w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
    } else {
      const uint2 two = shared_uint2(shared_address(from));
      w[0] = two.x, w[1] = two.y;
    }
    rows.numbers(chunk, v);
  }
};

// f(packs of a thread): fewer where rows are not the widest that T threads take.
template <int T, class F>
auto by_packs(int64_t width, const F& f) {
  const auto fits = [&](int packs) { return width <= kRowPack * T * packs; };
  if constexpr (T >= 32) {
    if (fits(kKept / 2)) return f(Count<kKept / 2>{});  // 512, 2048 columns
  }
  if constexpr (T == 32) {
    if (fits(kKept - 2)) return f(Count<kKept - 2>{});  // 768
  }
  return f(Count<kKept>{});
}
// With few packs more blocks fit.
template <int T, int kPacks>
constexpr int kBlocksEach = kPacks > kKept / 2 ? 3
                            : T == 32          ? 4
                                               : 5;

template <int T, int kPacks, class X, class Y, class W>
__global__ void __launch_bounds__(kRowBlock, kBlocksEach<T, kPacks>)
    norm_backward_packs(const __grid_constant__ NormBackward<X, Y, W> n) {
  using In = Stages<T, X, Y>;
  constexpr int64_t kAtOnce = kRowBlock / T;
  const int64_t step = gridDim.x * kAtOnce;
  unsigned char* const raw = dynamic_shared();
  const In in{raw, In::packs(n.width), n.add};
  const auto load_dy = [&](int stage, int s, float(&dy)[kRowPack]) {
    In::load(in.dy(stage, s), n.dy, dy);
    if (!n.has_also) return;
    float more[kRowPack];
    In::load(in.also(stage, s), n.also, more);
#pragma unroll
    for (int i = 0; i < kRowPack; ++i) dy[i] += more[i];
  };
  const int width = static_cast<int>(n.width), first = kRowPack * (static_cast<int>(threadIdx.x) % T);
  const auto each = [&](auto f) {
#pragma unroll
    for (int s = 0; s < kPacks; ++s) {
      const int c = first + s * kRowPack * T;
      if (c < width) f(s, c);
    }
  };
  const bool sums = n.partial != nullptr;
  float u[kPacks][kRowPack], dw[kPacks][kRowPack] = {}, db[kPacks][kRowPack] = {};
  wait_for_last();
  each([&](int s, int c) { load_factors(n.w, c, n.offset, u[s]); });
  const auto call = [&](int stage, int64_t r) {
    if (r < n.rows) {
      const X x = n.x.row(r), old = n.dx.row(r);
      const Y dy = n.dy.row(r);
      const RoundedForm<X> also = n.also.row(r);
      each([&](int s, int c) {
        In::call(in.x(stage, s), x, c);
        In::call(in.dy(stage, s), dy, c);
        if (n.has_also) In::call(in.also(stage, s), also, c);
        if (n.add) In::call(in.old(stage, s), old, c);
      });
    }
    end_of_chunks();
  };
  int64_t r = blockIdx.x * kAtOnce + threadIdx.x / T;
  Statistics<float> next(n, r);
  call(0, r);
  for (int stage = 0; r < n.rows; r += step, stage ^= 1) {
    const Statistics<float> of = next;
    uint32_t kept[kPacks];  // called for before they are needed, and not touched until then
    if (n.kept) each([&](int s, int c) { kept[s] = n.kept.word(r, c); });
    next = Statistics<float>(n, r + step);
    call(stage ^ 1, r + step);
    wait_for_chunks<1>();
    RowSums<T, float> means;
    each([&](int s, int) {
      float x[kRowPack], dy[kRowPack], xhat[kRowPack];
      In::load(in.x(stage, s), n.x, x);
      load_dy(stage, s, dy);
      means.add(of, x, dy, u[s], xhat);
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        dw[s][i] = fma(dy[i], xhat[i], dw[s][i]);
        db[s][i] += dy[i];
      }
    });
    if (!n.dx) continue;
    means.finish(n.mean != nullptr, n.width);
    const X to = n.dx.row(r);
    const RoundedForm<X> rounded = n.rounded.row(r);
    each([&](int s, int c) {
      float x[kRowPack], dy[kRowPack], out[kRowPack];
      In::load(in.x(stage, s), n.x, x);
      load_dy(stage, s, dy);
      if (n.add) In::load(in.old(stage, s), n.dx, out);
      means.gradient(of, x, dy, u[s], n.add, out);
      to.store(0, c, out);
      if (n.kept) n.kept.apply(kept[s] >> c % 32, out);
      if (n.rounded) rounded.store(0, c, out);
    });
  }
  if (!sums) return;
  __syncthreads();  // all rows have been read: the memory is free
  auto* const own = reinterpret_cast<float*>(raw) + threadIdx.x / T * 2 * n.width;
  each([&](int s, int c) {
    *reinterpret_cast<float4*>(own + c) = make_float4(dw[s][0], dw[s][1], dw[s][2], dw[s][3]);
    *reinterpret_cast<float4*>(own + n.width + c) = make_float4(db[s][0], db[s][1], db[s][2], db[s][3]);
  });
  write_piece<T>(n, reinterpret_cast<const float*>(raw));
}

constexpr int64_t kMostColumns = 8192, kProcessors = 132;
constexpr int kMostShared = 2 * kMostColumns * sizeof(double);

template <auto kKernel, class N>
void launch_pieces(const Exec& exec, int64_t pieces, int64_t shared_bytes, const N& n) {
  static const cudaError_t prepared =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(std::min<int64_t>(kMostShared, most_shared_bytes())));
  std::ignore = prepared;
  launch(exec, kKernel, static_cast<unsigned>(pieces), kRowBlock, static_cast<size_t>(shared_bytes), n);
}

template <int T, class X, class Y, class W>
int64_t run_pieces_by(const Exec& exec, NormBackward<X, Y, W>& n) {
  constexpr int64_t kAtOnce = kRowBlock / T;
  constexpr bool kPacked = X::kUnroll > 1;
  const int64_t most =
      kProcessors * by_packs<T>(n.width, [](auto packs) { return kBlocksEach<T, decltype(packs)::value>; });
  const int64_t pieces = std::min((n.rows + kAtOnce - 1) / kAtOnce, most);
  if (pieces == 0) return 0;
  goes_back(false);  // the sums of dw and db have their order
  const int64_t padded = (n.width + kRowPack - 1) / kRowPack * kRowPack;
  const int64_t sum_bytes = n.partial != nullptr ? kAtOnce * 2 * padded * static_cast<int64_t>(sizeof(*n.partial)) : 0;
  if constexpr (kPacked) {
    if (n.width <= kRowPack * T * kKept) {
      const int64_t bytes = std::max<int64_t>(Stages<T, X, Y>::bytes(n.width, n.add, n.has_also), sum_bytes);
      by_packs<T>(n.width, [&](auto packs) {
        constexpr int kPacks = X::kF32 ? decltype(packs)::value : kKept;  // wide rows of bf16 are rare
        launch_pieces<norm_backward_packs<T, kPacks, X, Y, W>>(exec, pieces, bytes, n);
      });
      return pieces;
    }
  }
  if constexpr (!kPacked || T == kRowBlock) {
    launch_pieces<norm_backward_pieces<T, X, Y, W>>(exec, pieces, sum_bytes, n);
  }
  return pieces;
}

template <class X, class Y, class W>
int64_t run_pieces(const Exec& exec, NormBackward<X, Y, W>& n) {
  int64_t pieces = 0;
  by_width(n.width, [&](auto t) { pieces = run_pieces_by<decltype(t)::value>(exec, n); });
  return pieces;
}

template <class X, class Y, class W>
void norm_backward_in(const Exec& exec, NormBackward<X, Y, W> n, const Grad& to_w, const Grad& to_b, const Tensor& dy,
                      const Tensor& x, const Tensor& also) {
  using R = typename X::Real;
  const GradView dw(to_w), db(to_b);
  const bool sums = to_w || to_b;
  const int64_t all = n.width;
  n.partial = sums && all <= kMostColumns ? reinterpret_cast<R*>(exec.scratch.data()) : nullptr;
  int64_t pieces = run_pieces(exec, n);
  // Sums of more columns than fit into shared memory: passes of their own.
  for (int64_t first = 0; sums && first < all; first += kMostColumns) {
    const int64_t width = std::min(kMostColumns, all - first);
    if (all > kMostColumns) {
      n.dx = X();
      n.add = false;
      n.x = X(x.slice(-1, first, width));
      n.dy = Y(dy.slice(-1, first, width));
      if (also.defined()) n.also = RoundedForm<X>(also.slice(-1, first, width));
      n.width = width;
      n.partial = reinterpret_cast<R*>(exec.scratch.data());
      pieces = run_pieces(exec, n);
    }
    add_pieces(exec, n.partial, pieces, 2 * width, 2 * width, [=] __device__(int64_t c, R sum) {
      if (c < width) {
        if (dw) dw.put(first + c, sum);
      } else if (db) {
        db.put(first + c - width, sum);
      }
    });
  }
}

template <class Args>
void run_norm_backward(const Exec& exec, const Args& a, const Tensor& mean, const Tensor& rstd, const Grad& db,
                       const Tensor& also) {
  const auto run = [&]<class X, class Y, class W>(X, Y, W) {
    using R = typename X::Real;
    const NormBackward<X, Y, W> n{X(a.dx.tensor),
                                  X(a.x),
                                  Y(a.dy),
                                  RoundedForm<X>(also),
                                  RoundedForm<X>(a.rounded),
                                  Kept(a.kept, a.dropout),
                                  W(a.w),
                                  a.dx.add,
                                  also.defined(),
                                  numbers_of<R>(mean),
                                  numbers_of<R>(rstd),
                                  static_cast<R>(a.offset),
                                  a.x.rows(),
                                  a.x.cols()};
    norm_backward_in(exec, n, a.dw, db, a.dy, a.x, also);
  };
  in_rounded_form(rstd, {&also, &a.rounded}, {&a.x, &a.dx.tensor}, {&a.dy}, {&a.w}, run);
}

}  // namespace

void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a) noexcept {
  run_norm_backward(exec, a, a.mean, a.rstd, a.db, a.also);
}
void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a) noexcept {
  run_norm_backward(exec, a, {}, a.r, {}, {});
}

}  // namespace qkv::kernels::cuda
