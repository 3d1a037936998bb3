// What a warp does with its sums of a tile, 2 x 16 rows by 128 columns. They pass through shared memory in units of 16 rows
// of 256 bytes, which the copy engine reads and writes while the warp goes on. A warp is alone on its scheduler here, and
// shared memory is busy with other warps' products: what is read from there is called for in batches.
#pragma once

#include "kernels/cuda/product.h"
#include "kernels/cuda/tma.h"

namespace qkv::kernels::cuda {

constexpr int kTileColumns = 128;

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
  __device__ float get(int64_t m, int64_t n) const {
    return narrow ? __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at(m, n)))
                  : *reinterpret_cast<const float*>(at(m, n));
  }
};

struct FinishArgs {
  Plane out, bias, other;  // other: residual, or out itself where the sums are added to it
  Plane gate, pre, dgate;
  Gating form;
  int columns = 0;
};

// Where a warp's sums belong: rows m .. end_m, columns from n; bias_row of the group, `shift` bytes to its output.
struct Place {
  int m, end_m, n, bias_row;
  int64_t shift;
};

// wide: out = sum (+ bias) (+ other), f32 or bf16. In bf16 alone: sum (+ bias), and forward and backward of Fused.
enum class FinishKind { wide, narrow, forward, backward };

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}
__device__ inline float2 unpack(uint32_t both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000U));
}
__device__ inline uint4 read_chunk(uint32_t at) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  return v;
}
__device__ inline uint2 read_half(uint32_t at) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  return v;
}
__device__ inline void write_chunk(uint32_t at, const uint4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ inline void write_half(uint32_t at, uint32_t x, uint32_t y) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(x), "r"(y) : "memory");
}
// x, but what follows from it is not computed far ahead: addresses would take the registers of sums.
__device__ inline int fresh(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
// Shared memory that was written is seen by the copy engine, and the other way round.
__device__ inline void hand_over() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
}

// 16 rows of up to 16 chunks of 16 bytes. Row r begins at chunk kTurn r and goes round, so that neither rows nor columns
// meet in a bank; in memory it is then two parts, one for each half of the warp.
template <int kTurn>
struct Unit {
  static constexpr int kBytes = 4096, kChunks = 16;

  __device__ static uint32_t at(int r, int c) { return static_cast<uint32_t>(r * 256 + ((c + kTurn * r) & 15) * 16); }

  // f(offset in the buffer, first chunk, bytes) for the lane's part of its row, if `rows` and `chunks` leave some.
  template <class F>
  __device__ static void for_part(int lane, int rows, int chunks, F f) {
    lane = fresh(lane);
    const int r = lane % 16, turned = (kTurn * r) & 15, first = lane < 16 ? 0 : 16 - turned;
    const int count = min(chunks - first, lane < 16 ? 16 - turned : turned);
    if (r < rows && count > 0) f(r * 256 + (lane < 16 ? turned * 16 : 0), first, count * 16);
  }
  // `from`: the unit's first number in memory; `row`: bytes from one row to the next.
  __device__ static void load(uint32_t to, const std::byte* from, int64_t row, int lane, int rows, int chunks,
                              uint32_t barrier) {
    for_part(lane, rows, chunks, [&](int offset, int first, int bytes) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to + offset),
          "l"(from + lane % 16 * row + first * 16), "r"(bytes), "r"(barrier)
          : "memory");
    });
  }
  __device__ static void store(std::byte* to, int64_t row, uint32_t from, int lane, int rows, int chunks) {
    for_part(lane, rows, chunks, [&](int offset, int first, int bytes) {
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + lane % 16 * row + first * 16),
          "r"(from + offset), "r"(bytes)
          : "memory");
    });
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
};
// Until what was stored has left shared memory.
__device__ inline void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  __syncwarp();
}

// What every warp has.
struct Finishing {
  const FinishArgs& args;
  Place place;
  uint32_t buffer, barrier;  // the barrier of what is loaded into the buffer
  int lane;
  uint32_t phase;  // of the barrier

  __device__ int rows(int unit_row) const { return min(max(place.end_m - (place.m + unit_row), 0), 16); }
  // Whole chunks of 16 bytes there are from column n on, up to a unit's.
  __device__ int chunks(int n, bool narrow, int most) const {
    return min(max(args.columns - n, 0) / (narrow ? 8 : 4), most);
  }
  __device__ void expect(int bytes) const {
    if (lane == 0) barrier_expect(barrier, static_cast<uint32_t>(bytes));
    __syncwarp();
  }
};

// The numbers after the last whole chunk of a row, where the columns are no multiple of a chunk.
template <class Box>
__device__ void store_rest(const Finishing& f, std::byte* to, int64_t row, uint32_t from, int rows, int n, bool narrow,
                           int most) {
  const int per = narrow ? 8 : 4, chunk = max(f.args.columns - n, 0) / per, rest = f.args.columns - n - chunk * per;
  if (chunk >= most || rest <= 0 || f.lane >= rows) return;
  const uint4 v = read_chunk(from + Box::at(f.lane, chunk));
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  std::byte* here = to + f.lane * row + chunk * 16;
#pragma unroll
  for (int k = 0; k < 7; ++k) {
    if (k >= rest) break;
    if (narrow) {
      reinterpret_cast<uint16_t*>(here)[k] = static_cast<uint16_t>(words[k / 2] >> k % 2 * 16);
    } else if (k < 4) {
      reinterpret_cast<uint32_t*>(here)[k] = words[k];
    }
  }
}

// Finishes in f32: four units of 16 x 64 sums. Shared memory: the sums, and what is added to them.
template <FinishKind kKind>
struct Finisher : Finishing {
  using Box = Unit<2>;
  static constexpr int kUnits = 4, kBuffers = 2, kBytes = kBuffers * Box::kBytes;

  __device__ int row_of(int unit) const { return unit / 2 * 64; }
  __device__ int column_of(int unit) const { return place.n + unit % 2 * 64; }
  __device__ int chunks_of(int unit, const Plane& plane) const {
    return chunks(column_of(unit), plane.narrow, plane.narrow ? 8 : 16);
  }

  // Calls for what a unit is joined with; of the first one, before its sums are there.
  __device__ void fetch(int unit) {
    if (!args.other) return;
    const int some = rows(row_of(unit)), count = chunks_of(unit, args.other);
    expect(some * count * 16);
    Box::load(buffer + Box::kBytes, args.other.at(place.m + row_of(unit), column_of(unit)) + place.shift,
              args.other.row * (args.other.narrow ? 2 : 4), lane, some, count, barrier);
  }

  // Sums of the tensor core: rows lane / 4 (+ 8), columns 8 j + 2 (lane % 4) (+ 1).
  __device__ void put(const float* sums) const {
    const int me = fresh(lane), r = me / 4, c = me % 4 / 2 + 2 * r;
    const uint32_t row = buffer + r * 256 + me % 2 * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const uint32_t to = row + ((2 * j + c) & 15) * 16;
      write_half(to, __float_as_uint(sums[4 * j]), __float_as_uint(sums[4 * j + 1]));
      write_half(to + 8 * 256, __float_as_uint(sums[4 * j + 2]), __float_as_uint(sums[4 * j + 3]));
    }
  }

  // Adds the bias and the other matrix and rounds, in place: rows lane / 16, + 2, + 4 ..., columns 4 (lane % 16).
  __device__ void join(int unit) {
    const int me = fresh(lane), c = me % 16;
    float bias[4] = {};
    if (args.bias) load_bias(column_of(unit) + 4 * c, bias);
    if (args.other) barrier_wait(barrier, phase++ & 1);
#pragma unroll
    for (int batch = 0; batch < 2; ++batch) {
      uint4 s[4], o[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = 8 * batch + 2 * i + me / 16;
        s[i] = read_chunk(buffer + Box::at(r, c));
        if (args.other.narrow) {
          const uint2 half = read_half(buffer + Box::kBytes + Box::at(r, c / 2) + c % 2 * 8);
          o[i] = {half.x << 16, half.x & 0xffff0000U, half.y << 16, half.y & 0xffff0000U};
        } else if (args.other) {
          o[i] = read_chunk(buffer + Box::kBytes + Box::at(r, c));
        }
      }
      if (args.out.narrow) __syncwarp();  // rows shrink over numbers others still read
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = 8 * batch + 2 * i + me / 16;
        const uint32_t words[4] = {s[i].x, s[i].y, s[i].z, s[i].w}, others[4] = {o[i].x, o[i].y, o[i].z, o[i].w};
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = __uint_as_float(words[k]);
          if (args.bias) v[k] += bias[k];
          if (args.other) v[k] = __uint_as_float(others[k]) + v[k];
        }
        if (args.out.narrow) {
          write_half(buffer + Box::at(r, c / 2) + c % 2 * 8, pack(v[0], v[1]), pack(v[2], v[3]));
        } else {
          write_chunk(buffer + Box::at(r, c),
                      {__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])});
        }
      }
    }
  }

  // `sums`: of a unit, by its number.
  template <class F>
  __device__ void run(F sums) {
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
      wait_for_stores();
      if (unit == 0) put(sums(0));
      if (unit == 1) put(sums(1));
      if (unit == 2) put(sums(2));
      if (unit == 3) put(sums(3));
      __syncwarp();
      if (args.bias || args.other || args.out.narrow) join(unit);
      hand_over();
      if (unit + 1 < kUnits) fetch(unit + 1);
      const int some = rows(row_of(unit)), count = chunks_of(unit, args.out);
      std::byte* to = args.out.at(place.m + row_of(unit), column_of(unit)) + place.shift;
      const int size = args.out.narrow ? 2 : 4;
      Box::store(to, args.out.row * size, buffer, lane, some, count);
      store_rest<Box>(*this, to, args.out.row * size, buffer, some, column_of(unit), args.out.narrow,
                      args.out.narrow ? 8 : 16);
    }
  }

 private:
  __device__ void load_bias(int n, float (&bias)[4]) const {
    if (n + 4 > args.columns) {
#pragma unroll
      for (int i = 0; i < 4; ++i) bias[i] = n + i < args.columns ? args.bias.get(place.bias_row, n + i) : 0;
    } else if (args.bias.narrow) {
      const auto* from = reinterpret_cast<const uint32_t*>(args.bias.at(place.bias_row, n));
      const float2 low = unpack(from[0]), high = unpack(from[1]);
      bias[0] = low.x, bias[1] = low.y, bias[2] = high.x, bias[3] = high.y;
    } else {
      const auto* from = reinterpret_cast<const float2*>(args.bias.at(place.bias_row, n));
      bias[0] = from[0].x, bias[1] = from[0].y, bias[2] = from[1].x, bias[3] = from[1].y;
    }
  }
};

}  // namespace qkv::kernels::cuda
