// Rows in packs: 4 or 8 numbers side by side, read and written at once where they lie well in memory (Packed), number by
// number elsewhere (Loose). A kernel is written once against either, and which one it gets never changes a result.
#pragma once

#include <array>
#include <initializer_list>

#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

template <int kWords>
__device__ void read_words(const std::byte* from, uint32_t* words) {
  if constexpr (kWords == 2) {
    *reinterpret_cast<uint2*>(words) = *reinterpret_cast<const uint2*>(from);
  } else {
    for (int i = 0; i < kWords; i += 4) {
      *reinterpret_cast<uint4*>(words + i) = *reinterpret_cast<const uint4*>(from + 4 * i);
    }
  }
}
template <int kWords>
__device__ void write_words(std::byte* to, const uint32_t* words) {
  if constexpr (kWords == 2) {
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(words);
  } else {
    for (int i = 0; i < kWords; i += 4) {
      *reinterpret_cast<uint4*>(to + 4 * i) = *reinterpret_cast<const uint4*>(words + i);
    }
  }
}

// Rows of bf16 or f32 whose packs of N columns are aligned. Computed in float.
class Packed {
 public:
  using Real = float;
  static constexpr int kUnroll = 8;  // of loops over packs
  // A pack on its way: the words of memory, so that many can be asked for before the first is needed.
  template <int N>
  struct Raw {
    alignas(16) uint32_t words[N];
  };

  Packed() = default;
  explicit Packed(const Tensor& t) {
    if (!t.defined()) return;
    data_ = t.data();
    narrow_ = t.dtype() == DType::bf16;
    const bool flat = t.contiguous() || t.rank() < 3 || t.stride(0) == t.dim(1) * t.stride(1);
    each_ = flat ? 1 : static_cast<int32_t>(t.dim(1));
    outer_ = t.contiguous() ? t.cols() : t.rank() < 2 ? 0 : flat ? t.stride(t.rank() - 2) : t.stride(0);
    inner_ = flat ? 0 : t.stride(1);
  }
  // Undefined tensors are taken: nothing is read.
  static bool takes(const Tensor& t, int64_t n) {
    if (!t.defined()) return true;
    if (!t.format().plain() || (t.dtype() != DType::bf16 && t.dtype() != DType::f32) || t.rank() == 0) return false;
    const int64_t bytes = std::min<int64_t>(n * size_of(t.dtype()), 16);
    if (t.cols() % n != 0 || !t.rows_contiguous() || t.count() == 0 || t.rows() > INT32_MAX ||
        reinterpret_cast<uintptr_t>(t.data()) % static_cast<uintptr_t>(bytes) != 0) {
      return false;
    }
    if (t.contiguous()) return true;
    for (int axis = 0; axis + 1 < t.rank(); ++axis) {
      if (t.stride(axis) * size_of(t.dtype()) % bytes != 0) return false;
    }
    return t.rank() <= 3;
  }

  __device__ explicit operator bool() const { return data_ != nullptr; }
  __device__ int valid(int64_t) const { return INT32_MAX; }  // how many columns of a pack exist

  template <int N>
  __device__ Raw<N> fetch(int64_t r, int64_t c) const {
    Raw<N> raw;
    if (narrow_) {
      read_words<N / 2>(data_ + 2 * at(r, c), raw.words);
    } else {
      read_words<N>(data_ + 4 * at(r, c), raw.words);
    }
    return raw;
  }
  template <int N>
  __device__ void numbers(const Raw<N>& raw, float (&v)[N]) const {
    if (narrow_) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        v[2 * i] = __uint_as_float(raw.words[i] << 16);
        v[2 * i + 1] = __uint_as_float(raw.words[i] & 0xffff0000U);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = __uint_as_float(raw.words[i]);
    }
  }
  template <int N>
  __device__ void load(int64_t r, int64_t c, float (&v)[N]) const {
    numbers(fetch<N>(r, c), v);
  }
  template <int N>
  __device__ void store(int64_t r, int64_t c, const float (&v)[N]) const {
    alignas(16) uint32_t words[N];
    if (narrow_) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
        words[i] = *reinterpret_cast<const uint32_t*>(&pair);
      }
      write_words<N / 2>(data_ + 2 * at(r, c), words);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) words[i] = __float_as_uint(v[i]);
      write_words<N>(data_ + 4 * at(r, c), words);
    }
  }
  template <int N>
  __device__ void put(int64_t r, int64_t c, const float (&v)[N], bool add) const {
    if (!add) return store(r, c, v);
    float sum[N];
    load(r, c, sum);
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] += v[i];
    store(r, c, sum);
  }

 private:
  // Row r is r / each * outer + r % each * inner elements from the start.
  __device__ int64_t at(int64_t r, int64_t c) const {
    if (each_ == 1) return r * outer_ + c;
    const auto row = static_cast<uint32_t>(r), each = static_cast<uint32_t>(each_);
    return row / each * outer_ + row % each * inner_ + c;
  }

  std::byte* data_ = nullptr;
  int64_t outer_ = 0, inner_ = 0;
  int32_t each_ = 1;
  bool narrow_ = false;
};

// Any tensor, one number after the other. Columns past the end read as zero and are not written.
template <class R>
class Loose {
 public:
  using Real = R;
  static constexpr int kUnroll = 1;
  template <int N>
  struct Raw {
    R v[N];
  };

  Loose() = default;
  explicit Loose(const Tensor& t) : view_(t) {}
  static bool takes(const Tensor&, int64_t) { return true; }

  __device__ explicit operator bool() const { return view_.data != nullptr; }
  __device__ int valid(int64_t c) const { return static_cast<int>(view_.cols() - c); }

  template <int N>
  __device__ Raw<N> fetch(int64_t r, int64_t c) const {
    Raw<N> raw;
    load(r, c, raw.v);
    return raw;
  }
  template <int N>
  __device__ void numbers(const Raw<N>& raw, R (&v)[N]) const {
    for (int i = 0; i < N; ++i) v[i] = raw.v[i];
  }
  // Never inlined: a switch over dtypes for every number of every loop would be most of the code.
  template <int N>
  __device__ __noinline__ void load(int64_t r, int64_t c, R (&v)[N]) const {
#pragma unroll 1
    for (int i = 0; i < N; ++i) v[i] = has(c + i, N) ? view_.get<R>(at(r, c + i)) : R{0};
  }
  template <int N>
  __device__ void store(int64_t r, int64_t c, const R (&v)[N]) const {
    put(r, c, v, false);
  }
  template <int N>
  __device__ __noinline__ void put(int64_t r, int64_t c, const R (&v)[N], bool add) const {
#pragma unroll 1
    for (int i = 0; i < N; ++i) {
      if (has(c + i, N)) view_.put(at(r, c + i), v[i], add);
    }
  }

 private:
  // A whole tensor may also be one row of packs of one number.
  __device__ bool has(int64_t c, int n) const {
    return n == 1 || c < view_.cols();
  }
  __device__ int64_t at(int64_t r, int64_t c) const {
    return view_.element(r * view_.cols() + c);
  }

  View view_;
};

inline bool packed(std::initializer_list<const Tensor*> all, int64_t n) {
  return std::all_of(all.begin(), all.end(), [&](const Tensor* t) { return Packed::takes(*t, n); });
}

// Calls f(Packed) where every tensor can be read in packs of four, else f(Loose<float>); f(Loose<double>) where `real`
// is f64.
template <class F>
void in_form(const Tensor& real, std::initializer_list<const Tensor*> all, F&& f) {
  if (real.dtype() == DType::f64) return f(Loose<double>{});
  if (packed(all, 4)) return f(Packed{});
  f(Loose<float>{});
}

// --- rows ------------------------------------------------------------------------------------------------------------

// A row is worked on by a warp or by a block, as its width says: T threads, each with the packs of four t, t + T, ...
inline constexpr int kRowPack = 4, kKept = 8;
inline constexpr int64_t kWarpColumns = 32 * kRowPack * kKept;  // 1024

// Calls f(T) as a constant type.
template <int kT>
struct RowThreads {
  static constexpr int value = kT;
};
template <class F>
void by_width(int64_t width, F&& f) {
  if (width <= kWarpColumns) return f(RowThreads<32>{});
  f(RowThreads<kThreads>{});
}

// What one thread has of a row. Packed rows stay in registers up to kKept packs, others are read again.
template <class A, int T>
class RowPart {
 public:
  using R = typename A::Real;
  __device__ RowPart(const A& rows, int64_t r, int64_t width) : rows_(rows), r_(r), width_(width) {
    typename A::template Raw<kRowPack> raw[kHere];
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width) raw[s] = rows.template fetch<kRowPack>(r, column(s));
    }
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width) rows.numbers(raw[s], kept_[s]);
    }
  }

  // f(first column, numbers) for each pack.
  template <class F>
  __device__ void each(F&& f) const {
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width_) f(column(s), kept_[s]);
    }
#pragma unroll 1
    for (int s = kHere; column(s) < width_; ++s) {
      R v[kRowPack];
      rows_.load(r_, column(s), v);
      f(column(s), v);
    }
  }
  // f(first column, numbers, numbers of the other part) for each pack of both.
  template <class F>
  __device__ void each_with(const RowPart& other, F&& f) const {
#pragma unroll
    for (int s = 0; s < kHere; ++s) {
      if (column(s) < width_) f(column(s), kept_[s], other.kept_[s]);
    }
#pragma unroll 1
    for (int s = kHere; column(s) < width_; ++s) {
      R v[kRowPack], w[kRowPack];
      rows_.load(r_, column(s), v);
      other.rows_.load(other.r_, column(s), w);
      f(column(s), v, w);
    }
  }
  // f(number) for each number.
  template <class F>
  __device__ void numbers(F&& f) const {
    each([&](int64_t c, const R(&v)[kRowPack]) {
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        if (i < rows_.valid(c)) f(v[i]);
      }
    });
  }

 private:
  static constexpr int kHere = A::kUnroll > 1 ? kKept : 1;
  static __device__ int64_t column(int s) {
    return kRowPack * (threadIdx.x % T + s * T);
  }

  const A& rows_;
  int64_t r_, width_;
  R kept_[kHere][kRowPack];
};

// Over the T threads of a row.
template <int T, class R>
__device__ R row_sum(R x) {
  if constexpr (T == 32) return warp_sum(x);
  return block_sum(x);
}
template <int T, class R>
__device__ R row_max(R x) {
  if constexpr (T == 32) return warp_max(x);
  return block_max(x);
}

template <int T, class F>
__global__ void __launch_bounds__(kThreads) run_rows_of(int64_t rows, const __grid_constant__ F f) {
  constexpr int kEach = kThreads / T;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * kEach + threadIdx.x / T; r < rows;
       r += static_cast<int64_t>(gridDim.x) * kEach) {
    f(r);
  }
}
// f(row) by T threads.
template <int T, class F>
void each_row_by(const Exec& exec, int64_t rows, const F& f) {
  if (rows <= 0) return;
  constexpr int64_t kEach = kThreads / T;
  run_rows_of<T>
      <<<static_cast<unsigned>(std::min((rows + kEach - 1) / kEach, kMostBlocks)), kThreads, 0, stream_of(exec)>>>(rows,
                                                                                                                   f);
  note_launch();
}

// f(row, first column) for every pack of N columns, each in one thread.
template <int N, class F>
void each_pack(const Exec& exec, int64_t rows, int64_t columns, const F& f) {
  const int64_t per_row = (columns + N - 1) / N, packs = rows * per_row;
  const bool small = packs <= UINT32_MAX;
  each_thread(exec, packs, [=] __device__(int64_t i) {
    const int64_t r = small ? static_cast<uint32_t>(i) / static_cast<uint32_t>(per_row) : i / per_row;
    f(r, (i - r * per_row) * N);
  });
}

// --- whole tensors, number by number ---------------------------------------------------------------------------------

template <class A, int kOuts, int kIns>
struct MapArgs {
  A outs[kOuts], ins[kIns > 0 ? kIns : 1];
  bool add[kOuts];
  int64_t packs, per_row;
};

// Two packs a thread, both asked for before either is used.
template <class A, int N, int kOuts, int kIns, class F>
__global__ void __launch_bounds__(kThreads)
    run_map(const __grid_constant__ MapArgs<A, kOuts, kIns> m, const __grid_constant__ F f) {
  using R = typename A::Real;
  constexpr int kAtOnce = 2, kRead = kIns > 0 ? kIns : 1;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kAtOnce;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kAtOnce + threadIdx.x; first < m.packs;
       first += step) {
    int64_t row[kAtOnce], column[kAtOnce];
    typename A::template Raw<N> raw[kAtOnce][kRead];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t i = first + u * kThreads;
      if (i >= m.packs) continue;
      row[u] = m.per_row == m.packs    ? 0
               : m.packs <= UINT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(m.per_row)
                                       : i / m.per_row;
      column[u] = (i - row[u] * m.per_row) * N;
#pragma unroll
      for (int k = 0; k < kIns; ++k) raw[u][k] = m.ins[k].template fetch<N>(row[u], column[u]);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u * kThreads >= m.packs) continue;
      R in[kRead][N], out[kOuts][N];
#pragma unroll
      for (int k = 0; k < kIns; ++k) m.ins[k].numbers(raw[u][k], in[k]);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        R x[kRead], y[kOuts];
#pragma unroll
        for (int k = 0; k < kIns; ++k) x[k] = in[k][i];
        f(x, y);
#pragma unroll
        for (int k = 0; k < kOuts; ++k) out[k][i] = y[k];
      }
#pragma unroll
      for (int k = 0; k < kOuts; ++k) {
        if (m.outs[k]) m.outs[k].put(row[u], column[u], out[k], m.add[k]);
      }
    }
  }
}

template <class A, int N, int kOuts, int kIns, class F>
void launch_map(const Exec& exec, const std::array<Grad, kOuts>& outs, const std::array<Tensor, kIns>& ins,
                int64_t rows, int64_t columns, const F& f) {
  MapArgs<A, kOuts, kIns> m{};
  for (int k = 0; k < kOuts; ++k) {
    m.outs[k] = A(outs[k].tensor);
    m.add[k] = outs[k].add;
  }
  for (int k = 0; k < kIns; ++k) m.ins[k] = A(ins[k]);
  m.per_row = columns / N;
  m.packs = rows * m.per_row;
  const int64_t each = 2 * kThreads;
  run_map<A, N, kOuts, kIns>
      <<<static_cast<unsigned>(std::min((m.packs + each - 1) / each, kMostBlocks)), kThreads, 0, stream_of(exec)>>>(m,
                                                                                                                    f);
  note_launch();
}

// f(x[], y[]) for every element: x from ins, y to outs (or added). All tensors have as many elements; outputs may be
// absent, all but one.
template <class R, size_t kOuts, size_t kIns, class F>
void map(const Exec& exec, std::array<Grad, kOuts> outs, std::array<Tensor, kIns> ins, const F& f) {
  constexpr int kO = static_cast<int>(kOuts), kI = static_cast<int>(kIns);
  int64_t count = 0, columns = 0;
  bool flat = true, same = true, narrow = true;
  const auto look = [&](const Tensor& t) {
    if (!t.defined()) return;
    same = same && (count == 0 || t.cols() == columns);
    count = t.count();
    columns = t.cols();
    flat = flat && t.contiguous();
    narrow = narrow && t.dtype() == DType::bf16;
  };
  for (const Grad& g : outs) look(g.tensor);
  for (const Tensor& t : ins) look(t);
  if (count == 0) return;
  if constexpr (sizeof(R) == sizeof(float)) {
    if (flat) {  // one long row
      columns = count;
      for (Grad& g : outs) {
        if (g) g.tensor = g.tensor.view({count});
      }
      for (Tensor& t : ins) t = t.view({count});
    }
    const auto takes = [&](int64_t n) {
      return (flat || same) &&
             std::all_of(outs.begin(), outs.end(), [&](auto& g) { return Packed::takes(g.tensor, n); }) &&
             std::all_of(ins.begin(), ins.end(), [&](auto& t) { return Packed::takes(t, n); });
    };
    if (narrow && takes(8)) return launch_map<Packed, 8, kO, kI>(exec, outs, ins, count / columns, columns, f);
    if (takes(4)) return launch_map<Packed, 4, kO, kI>(exec, outs, ins, count / columns, columns, f);
  }
  launch_map<Loose<R>, 1, kO, kI>(exec, outs, ins, 1, count, f);
}

}  // namespace qkv::kernels::cuda
