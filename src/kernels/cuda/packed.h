// Rows in packs: 4 or 8 numbers side by side, read and written at once where they lie well in memory (Packed), number by
// number elsewhere (Loose). A kernel is written once against either, and which one it gets never changes a result.
#pragma once

#include <initializer_list>
#include <type_traits>

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

// Rows of T whose packs of N columns are aligned, T bf16, float or Either of them. Computed in float.
struct Either {};

template <class T>
class Packed {
 public:
  using Real = float;
  static constexpr int kUnroll = 8;  // of loops over packs
  static constexpr bool kBf16 = std::is_same_v<T, __nv_bfloat16>, kF32 = std::is_same_v<T, float>;
  // A pack on its way: the words of memory, so that many can be asked for before the first is needed.
  template <int N>
  struct Raw {
    static constexpr int kWords = kBf16 ? N / 2 : N;
    alignas(kWords == 2 ? 8 : 16) uint32_t words[kWords];
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
    const bool known = (!kF32 && t.dtype() == DType::bf16) || (!kBf16 && t.dtype() == DType::f32);
    if (!t.format().plain() || !known || t.rank() == 0) return false;
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

  __host__ __device__ explicit operator bool() const { return data_ != nullptr; }
  __device__ int valid(int64_t) const { return INT32_MAX; }  // how many columns of a pack exist
  // Row r alone: where it begins is found once for all its packs.
  __device__ Packed row(int64_t r) const {
    Packed one;
    one.data_ = data_ + (narrow() ? 2 : 4) * at(r, 0);
    one.narrow_ = narrow_;
    return one;
  }
  __device__ const std::byte* address(int64_t r, int64_t c) const { return data_ + (narrow() ? 2 : 4) * at(r, c); }

  template <int N>
  __device__ Raw<N> fetch(int64_t r, int64_t c) const {
    Raw<N> raw;
    if (narrow()) {
      read_words<N / 2>(data_ + 2 * at(r, c), raw.words);
    } else if constexpr (!kBf16) {
      read_words<N>(data_ + 4 * at(r, c), raw.words);
    }
    return raw;
  }
  template <int N>
  __device__ void numbers(const Raw<N>& raw, float (&v)[N]) const {
    if (narrow()) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        v[2 * i] = __uint_as_float(raw.words[i] << 16);
        v[2 * i + 1] = __uint_as_float(raw.words[i] & 0xffff0000U);
      }
    } else if constexpr (!kBf16) {
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
    if (narrow()) {
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
  __device__ bool narrow() const {
    if constexpr (kBf16 || kF32) return kBf16;
    return narrow_;
  }
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

template <class T>
bool packed(std::initializer_list<const Tensor*> all, int64_t n) {
  return std::all_of(all.begin(), all.end(), [&](const Tensor* t) { return Packed<T>::takes(*t, n); });
}

template <int N>
struct Count {
  static constexpr int value = N;
};

// Calls f(form, Count<N>): packs of eight bf16 or four of either where every tensor can be read so, else Loose<float>;
// Loose<double> where `real` is f64.
template <class F>
void in_form(const Tensor& real, std::initializer_list<const Tensor*> all, F&& f) {
  if (real.dtype() == DType::f64) return f(Loose<double>{}, Count<4>{});
  if (packed<__nv_bfloat16>(all, 8)) return f(Packed<__nv_bfloat16>{}, Count<8>{});
  if (packed<Either>(all, 4)) return f(Packed<Either>{}, Count<4>{});
  f(Loose<float>{}, Count<4>{});
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

}  // namespace qkv::kernels::cuda
