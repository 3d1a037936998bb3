// What a warp does with its sums of a tile, 2 x 16 rows by 128 or 192 columns or 16 by 256 or 320: through shared memory, so that whole
// lines are read and written. A warp is alone here while others multiply, so all that can be is loaded ahead and side by side.
#pragma once

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/ptx.h"

namespace qkv::kernels::cuda {

// A matrix of f32 or bf16 with its rows apart.
struct Plane {
  std::byte* data = nullptr;
  int64_t row = 0;
  bool narrow = false;  // bf16

  Plane() = default;
  explicit Plane(const View& v)
      : data(v.data), row(v.rank >= 2 ? v.strides[v.rank - 2] : 0), narrow(v.dtype == DType::bf16) {}
  __device__ explicit operator bool() const { return data != nullptr; }
  __device__ std::byte* at(int64_t m, int64_t n) const { return data + (m * row + n) * (narrow ? 2 : 4); }
};

// A number of such a matrix, and those so many rows below it and bytes beside it, which are less than 2 GiB away.
struct Corner {
  std::byte* data;
  uint32_t row;  // bytes

  __device__ Corner(const Plane& plane, int64_t m, int64_t n, int64_t shift = 0)
      : data(plane.at(m, n) + shift), row(static_cast<uint32_t>(plane.row) * (plane.narrow ? 2 : 4)) {}
  __device__ std::byte* operator()(int rows, int bytes) const { return data + (rows * row + bytes); }
};

// Where results go, and what is added to their columns.
struct Target {
  Plane out, bias;
  int columns = 0;
  float* sums_of_a = nullptr;
};

struct FinishArgs {
  Plane other;  // residual, or out itself where the sums are added to it
  Plane gate, pre, dgate;
  Gating form;
  Kept kept;                     // of sums with their bias, before `other` joins
  const float* scale = nullptr;  // sums are multiplied by it and the factor
  float factor = 1;

  __device__ float scaling() const { return scale != nullptr ? *scale * factor : 1.0F; }
};

// Where a warp's sums belong: rows m .. end_m, columns from n; bias_row of the group, `shift` bytes to its output.
struct Place {
  int m, end_m, n, bias_row;
  int64_t shift;
};

// wide: out = sum (+ bias), f32 or bf16; joined: + other. bare: out = sum, f32. In bf16 alone: sum (+ bias), and forward and
// backward of Fused.
enum class FinishKind { wide, joined, bare, narrow, forward, backward };

// Of a tile's halves, 64 rows each, a warpgroup has both, but of the widest tiles one.
template <int kColumns>
constexpr int kHalves = kColumns > kWideColumns ? 1 : 2;

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline float2 unpack(uint32_t both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000U));
}
// Where a warp is in its block: one of four in a warpgroup, which have a barrier of their own.
struct Worker {
  uint32_t buffer, bias;  // shared memory: of the warp, of the warpgroup
  int lane, thread, barrier;

  __device__ void meet() const { cuda::meet<128>(barrier); }
};

// The bias of a tile's columns as f32 in shared memory. It is called for before there are sums, since nothing else would be done
// while it comes; columns outside have zeros.
template <int kColumns>
struct TileBias {
  const Target& target;
  const Place& place;
  const Worker& worker;

  __device__ void call_for() const {
    if (!target.bias) return;
    worker.meet();  // that of the last tile has been read
    for (int i = worker.thread; i < kColumns / 2; i += 128) {
      const int n = place.n + 2 * i, count = min(max(target.columns - n, 0), 2);
      const std::byte* from = count > 0 ? target.bias.at(place.bias_row, n) : target.bias.data;
      if (!target.bias.narrow) {
        fetch_chunk<8>(worker.bias + 8 * i, from, 4 * count);
      } else {
        const auto* two = reinterpret_cast<const __nv_bfloat16*>(from);
        const float x = count > 0 ? __bfloat162float(two[0]) : 0, y = count > 1 ? __bfloat162float(two[1]) : 0;
        put_shared(worker.bias + 8 * i, make_float2(x, y));
      }
    }
    end_of_chunks();
  }
  __device__ void wait() const {
    if (!target.bias) return;
    wait_for_chunks<0>();
    worker.meet();
  }
  // Of columns n ... of the tile.
  __device__ float2 two(int n) const { return shared_float2(worker.bias + 4 * n); }
  __device__ float4 four(int n) const {
    const uint4 v = shared_uint4(worker.bias + 4 * n);
    return {__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w)};
  }
};

// Finishes in f32, units of 16 x 64 sums one after the other through shared memory, 16 chunks of four numbers a row. What a unit
// is joined with lies beside its sums, each chunk where the thread that reads it has put it: as soon as it is read, that of the
// next unit is called for.
template <FinishKind kKind, int kColumns>
struct Finisher {
  static constexpr bool kJoined = kKind == FinishKind::joined;
  static constexpr int kAcross = kColumns / 64, kUnits = 2 * kAcross, kUnitBytes = 4096;
  static constexpr int kBytes = (kJoined ? 2 : 1) * kUnitBytes;
  static constexpr bool kBiased = true;
  static constexpr int kChunks = 8, kSome = 4;  // of a thread in a unit, two rows apart; called for together

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  const Worker& worker;
  uint32_t buffer = worker.buffer;
  int lane = worker.lane;

  __device__ void begin() const { bias().call_for(); }
  // Before there are sums: what they are joined with comes as far as the shared cache.
  __device__ void call_ahead() const {
    if (!kJoined) return;
    const int m = place.m + lane / 16 * 64 + lane % 16, line = args.other.narrow ? 64 : 32;
    if (m >= place.end_m) return;
    const int end = min(place.n + kColumns, target.columns);
    for (int n = place.n; n < end; n += line) prefetch(args.other.at(m, n) + place.shift);
  }

  // `sums`: of a unit, by its number.
  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    bias().wait();
    if constexpr (kJoined) {
      const bool plain =
          args.scale == nullptr && !args.other.narrow && !target.out.narrow && place.n + kColumns <= target.columns;
      if (plain) return args.kept ? walk<true, true>(sums) : walk<true, false>(sums);
    }
    walk<false, kJoined>(sums);
  }

 private:
  __device__ TileBias<kColumns> bias() const { return {target, place, worker}; }
  __device__ static uint32_t at(int r, int c) { return static_cast<uint32_t>(r * 256 + ((c ^ (r & 7) * 2) * 16)); }
  __device__ uint32_t other_at(int i) const { return buffer + kUnitBytes + i * 512 + lane * 16; }
  __device__ int row_of(int unit) const { return place.m + unit / kAcross * 64 + lane / 16; }
  __device__ int column_in_tile(int unit) const { return unit % kAcross * 64 + lane % 16 * 4; }

  __device__ Corner corner(const Plane& plane) const {
    return {plane, place.m + lane / 16, place.n + lane % 16 * 4, place.shift};
  }
  __device__ static int row_in_tile(int unit) { return unit / kAcross * 64; }

  // kPlain: all of f32, whole columns, not scaled. kDrops: perhaps, or, if plain, certainly.
  template <bool kPlain, bool kDrops, class F>
  __device__ __forceinline__ void walk(F sums) const {
    const Corner out = corner(target.out), other = corner(args.other);
    for (int first = 0; first < kChunks; first += kSome) fetch<kPlain>(other, 0, first);
    constexpr int kWords = kPlain && kDrops ? kChunks : 1;
    uint32_t kept[kWords], next[kWords];
    if constexpr (kPlain && kDrops) load_kept(0, kept);
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {  // numbers of registers are constants
        if (unit == u) put(sums(u));
      }
      __syncwarp();
      if constexpr (kPlain && kDrops) load_kept(unit + 1, next);
      finish<kPlain, kDrops>(out, other, unit, kept);
      if constexpr (kPlain && kDrops) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) kept[i] = next[i];
      }
      __syncwarp();
    }
  }

  // Calls for what kSome chunks of a unit are joined with.
  template <bool kPlain>
  __device__ __forceinline__ void fetch(const Corner& other, int unit, int first) const {
    if (!kJoined) return;
    if (unit < kUnits) {
      const int row = row_in_tile(unit) + 2 * first, rows = place.end_m - (place.m + lane / 16) - row;
      const bool narrow = !kPlain && args.other.narrow;
      const int across = unit % kAcross * 64, size = narrow ? 2 : 4;
      const int bytes = kPlain ? 16 : min(max(target.columns - place.n - column_in_tile(unit), 0), 4) * size;
#pragma unroll
      for (int i = 0; i < kSome; ++i) {
        const int some = 2 * i < rows ? bytes : 0;
        const void* from = some > 0 ? other(row + 2 * i, across * size) : args.other.data;
        if (narrow) {
          fetch_chunk<8>(other_at(first + i), from, some);
        } else {
          fetch_chunk<16>(other_at(first + i), from, some);
        }
      }
    }
    end_of_chunks();
  }
  // The words that say which of four columns are kept; not shifted yet, for that would wait for them.
  __device__ __forceinline__ void load_kept(int unit, uint32_t (&kept)[kChunks]) const {
    const int m = row_of(unit), n = place.n + column_in_tile(unit);
    const uint32_t* from = args.kept.bits + m * args.kept.words + n / 32;
#pragma unroll
    for (int i = 0; i < kChunks; ++i, from += 2 * args.kept.words) {
      if (unit < kUnits && m + 2 * i < place.end_m) kept[i] = *from;
    }
  }

  // Sums of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  __device__ void put(const float* sums) const {
    const uint32_t row = buffer + lane / 4 * 256 + lane % 2 * 8;
    const int swizzle = lane / 4 * 2;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const uint32_t to = row + ((2 * j + lane % 4 / 2) ^ swizzle) * 16;
      put_shared(to, make_float2(sums[4 * j], sums[4 * j + 1]));
      put_shared(to + 8 * 256, make_float2(sums[4 * j + 2], sums[4 * j + 3]));
    }
  }

  template <bool kPlain, bool kDrops, int N>
  __device__ __forceinline__ void finish(const Corner& out, const Corner& other, int unit,
                                         const uint32_t (&kept)[N]) const {
    const int in_tile = column_in_tile(unit), n = place.n + in_tile, count = target.columns - n;
    const int m = row_of(unit), rows = kPlain || count > 0 ? place.end_m - m : 0;
    const int row = row_in_tile(unit), bytes = unit % kAcross * 64 * (!kPlain && target.out.narrow ? 2 : 4);
    float4 b{};
    if (target.bias) b = bias().four(in_tile);
    const float scale = kPlain ? 1 : args.scaling();
#pragma unroll
    for (int first = 0; first < kChunks; first += kSome) {
      if (kJoined) wait_for_chunks<kChunks / kSome - 1>();
#pragma unroll
      for (int k = 0; k < kSome; ++k) {
        const int i = first + k;
        const uint4 raw = shared_uint4(buffer + at(2 * i + lane / 16, lane % 16));
        float v[4] = {__uint_as_float(raw.x), __uint_as_float(raw.y), __uint_as_float(raw.z), __uint_as_float(raw.w)};
        if (!kPlain) {
#pragma unroll
          for (float& x : v) x *= scale;
        }
        if (target.bias) v[0] += b.x, v[1] += b.y, v[2] += b.z, v[3] += b.w;
        if (kPlain && kDrops) {
          args.kept.apply(kept[kPlain && kDrops ? i : 0] >> n % 32, v);
        } else if (kDrops && args.kept && 2 * i < rows) {
          args.kept.apply(m + 2 * i, n, v);
        }
        if (kJoined) join<kPlain>(other_at(i), v);
        if (2 * i < rows) store<kPlain>(out(row + 2 * i, bytes), count, v);
      }
      fetch<kPlain>(other, unit + 1, first);
    }
  }
  template <bool kPlain>
  __device__ __forceinline__ void join(uint32_t from, float (&v)[4]) const {
    const uint4 o = shared_uint4(from);
    const float2 low = unpack(o.x), high = unpack(o.y);
    const bool narrow = !kPlain && args.other.narrow;
    v[0] = (narrow ? low.x : __uint_as_float(o.x)) + v[0];
    v[1] = (narrow ? low.y : __uint_as_float(o.y)) + v[1];
    v[2] = (narrow ? high.x : __uint_as_float(o.z)) + v[2];
    v[3] = (narrow ? high.y : __uint_as_float(o.w)) + v[3];
  }
  template <bool kPlain>
  __device__ __forceinline__ void store(std::byte* to, int count, const float (&v)[4]) const {
    if (!kPlain && count < 4) {
#pragma unroll
      for (int k = 0; k < 3; ++k) {
        if (k < count) put_one(to, k, v[k]);
      }
    } else if (!kPlain && target.out.narrow) {
      *reinterpret_cast<uint2*>(to) = make_uint2(pack(v[0], v[1]), pack(v[2], v[3]));
    } else {
      *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    }
  }
  __device__ void put_one(std::byte* to, int k, float v) const {
    if (target.out.narrow) {
      reinterpret_cast<__nv_bfloat16*>(to)[k] = __float2bfloat16_rn(v);
    } else {
      reinterpret_cast<float*>(to)[k] = v;
    }
  }
};

// The same straight from the registers, of tiles that both warpgroups have together: all of f32, columns in whole packs of four,
// not scaled. Neighbouring threads exchange sums, so that each has packs of one row; as soon as a pack is joined, what is joined
// 64 columns further on is called for.
template <int kColumns>
requires(kHalves<kColumns> == 1) struct Finisher<FinishKind::joined, kColumns> {
  static constexpr int kAcross = kColumns / 64, kBytes = 0;
  static constexpr bool kBiased = true;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  const Worker& worker;
  int lane = worker.lane;

  __device__ void begin() const { bias().call_for(); }
  // Before there are sums: what they are joined with comes as far as the shared cache.
  __device__ void call_ahead() const {
    const int m = place.m + lane % 16, end = min(place.n + kColumns, target.columns);
    if (m >= place.end_m) return;
    for (int n = place.n + lane / 16 * 32; n < end; n += 64) prefetch(args.other.at(m, n));
  }

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    bias().wait();
    args.kept ? walk<true>(sums) : walk<false>(sums);
  }

 private:
  __device__ TileBias<kColumns> bias() const { return {target, place, worker}; }

  template <bool kDrops, class F>
  __device__ __forceinline__ void walk(F sums) const {
    const bool odd = lane % 2 != 0;  // has the row eight further down
    const int m = place.m + lane / 4 + (odd ? 8 : 0), in_tile = lane % 4 / 2 * 4, n = place.n + in_tile;
    const int columns = m < place.end_m ? target.columns - n : 0;
    const auto* from = reinterpret_cast<const float4*>(args.other.at(m, n));
    auto* to = reinterpret_cast<float4*>(target.out.at(m, n));
    const uint32_t* words = args.kept.bits + m * args.kept.words + place.n / 32;
    float4 other[8];
    uint32_t kept[2];
    const auto call = [&](int unit, int j) {
      if (64 * unit + 8 * j < columns) other[j] = from[16 * unit + 2 * j];
      if (kDrops && j % 4 == 0 && 64 * unit + 8 * j < columns) kept[j / 4] = words[2 * unit + j / 4];
    };
#pragma unroll
    for (int j = 0; j < 8; ++j) call(0, j);
#pragma unroll
    for (int unit = 0; unit < kAcross; ++unit) {
      const float* s = sums(unit);
      const uint32_t some[2] = {kept[0], kept[1]};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float four[4] = {s[4 * j], s[4 * j + 1], s[4 * j + 2], s[4 * j + 3]};
        keep(four);  // not to be read before wgmma_wait()
        const float x = __shfl_xor_sync(0xffffffffU, odd ? four[0] : four[2], 1),
                    y = __shfl_xor_sync(0xffffffffU, odd ? four[1] : four[3], 1);
        float v[4] = {odd ? x : four[0], odd ? y : four[1], odd ? four[2] : x, odd ? four[3] : y};
        if (target.bias) {
          const float4 b = bias().four(64 * unit + 8 * j + in_tile);
          v[0] += b.x, v[1] += b.y, v[2] += b.z, v[3] += b.w;
        }
        if (kDrops) args.kept.apply(some[j / 4] >> (8 * (j % 4) + in_tile), v);
        const float4 o = other[j];
        if (64 * unit + 8 * j < columns) {
          to[16 * unit + 2 * j] = make_float4(o.x + v[0], o.y + v[1], o.z + v[2], o.w + v[3]);
        }
        if (unit + 1 < kAcross) call(unit + 1, j);
      }
    }
  }
};

// Straight from the registers, for products whose k is so long that the end hardly counts: the ring has the shared memory.
template <int kColumns>
struct Finisher<FinishKind::bare, kColumns> {
  static constexpr int kAcross = kColumns / 64, kUnits = kHalves<kColumns> * kAcross, kBytes = 0;
  static constexpr bool kBiased = false;

  const FinishArgs& args;
  const Target& target;
  const Place& place;
  const Worker& worker;
  int lane = worker.lane;

  __device__ void begin() const {}
  __device__ void call_ahead() const {}

  template <class F>
  __device__ __forceinline__ void run(F sums) const {
    const float scale = args.scaling();
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) {
      const int m = place.m + unit / kAcross * 64 + lane / 4, n = place.n + unit % kAcross * 64 + lane % 4 * 2;
      auto* to = reinterpret_cast<float*>(target.out.at(m, n) + place.shift);
      const float* s = sums(unit);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (n + 8 * j >= target.columns) continue;  // columns are even
#pragma unroll
        for (int low = 0; low < 2; ++low) {
          const float2 two = make_float2(scale * s[4 * j + 2 * low], scale * s[4 * j + 2 * low + 1]);
          if (m + 8 * low < place.end_m) *reinterpret_cast<float2*>(to + 8 * low * target.out.row + 8 * j) = two;
        }
      }
    }
  }
};

}  // namespace qkv::kernels::cuda
