// A tile of 64 rows in the registers of a warpgroup: hiding scores, softmax block by block, merging spans, statistics.
// A thread has rows lane / 4 and 8 more of its warp's sixteen, and keys 2 (lane % 4) and one more of every eight.
#pragma once

#include "kernels/cuda/attention_fast.h"

namespace qkv::kernels::cuda {

// The two rows of a thread, 8 apart, in a segment.
struct RowPair {
  int row[2], position[2];
  bool valid[2];
  SeenKeys seen[2];
};

__device__ __forceinline__ void hide(float (&s)[32], const RowPair& r, int first_key, int quad) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + 8 * j + 2 * quad + i % 2;
      if (key < r.seen[i / 2].begin || key >= r.seen[i / 2].end) s[4 * j + i] = kHidden;
    }
  }
}

// A store that the compiler does not turn into a choice among the registers of an array, which it would keep in memory.
__device__ inline void store_at(float* to, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

// Leaves the scores of single keys where their probabilities will be.
__device__ __forceinline__ void keep_single_keys(const FastAttention& f, const float (&s)[32], const RowPair& r,
                                                 int head, int first_key, int quad) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int64_t at = static_cast<int64_t>(r.row[i]) * f.heads + head;
    if (f.first != nullptr && first_key == 0 && quad == 0 && r.valid[i]) f.first[at] = s[2 * i];
    for (int o = 0; o < f.offset_count; ++o) {
      const int key = r.position[i] - f.offsets[o] - first_key;
      if (!__any_sync(~0U, key >= 0 && key < kKeyBlock)) continue;
      const int mine = r.valid[i] ? key - 2 * quad : -1;
      float* to = f.at_offset + at * f.offset_count + o;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        if (mine == 8 * (j / 2) + j % 2) store_at(to, s[4 * (j / 2) + 2 * i + j % 2]);
      }
    }
  }
}

// The keys from the lowest to the highest that offsets reach from some positions.
__device__ inline SeenKeys single_keys(const FastAttention& f, int first, int last) {
  SeenKeys keys{INT32_MAX, INT32_MIN};
  for (int o = 0; o < f.offset_count; ++o) {
    keys.begin = min(keys.begin, first - f.offsets[o]);
    keys.end = max(keys.end, last - f.offsets[o] + 1);
  }
  return keys;
}

// Which keys of a block have this lane's class, lane / 4: bit j for key j.
struct BlockClasses {
  uint64_t mine = 0;

  BlockClasses() = default;
  __device__ __forceinline__ BlockClasses(const FastAttention& f, const FastSegment& s, int n, int first_key,
                                          int lane) {
    if (f.class_count == 0) return;
#pragma unroll
    for (int half = 1; half >= 0; --half) {
      const int key = first_key + 32 * half + lane;
      const int of = key < s.keys ? f.key_classes[key_row(f, s, n, key)] : 0;
      uint32_t same = ~0U;
#pragma unroll
      for (int bit = 0; bit < 3; ++bit) {
        const uint32_t set = __ballot_sync(~0U, of >> bit & 1);
        same &= lane / 4 >> bit & 1 ? set : ~set;
      }
      mine = mine << 32 | same;
    }
  }
  // Adds the columns of class masses: the probabilities of 16 keys at a time against ones where a key has the class.
  __device__ __forceinline__ void count(float (&mass)[4], const uint32_t (&p)[4][4], int lane) const {
    const uint64_t from = mine >> 2 * (lane % 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto of = static_cast<uint32_t>(from >> 16 * k);
      mma(mass, p[k], ones(of), ones(of >> 8));
    }
  }
  static __device__ uint32_t ones(uint32_t bits) {
    return (bits & 1) * 0x3F80U + (bits >> 1 & 1) * 0x3F800000U;
  }
};
static_assert(kMostClasses == 8);

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

// The span a warpgroup is in: two rows a thread, chains of even and odd keys.
template <class C>
struct Span {
  float highest[2] = {kHidden, kHidden};
  Chain<C::kStats> chain[2][2];
  int argmax[2] = {-1, -1};

  __device__ __forceinline__ RowSums sums(int i) const {
    const auto& even = chain[i][0];
    const auto& odd = chain[i][1];
    RowSums r{.highest = highest[i], .total = quad_sum(even.total + odd.total)};
    if (C::kStats) {
      r.log_mass = quad_sum(even.log_mass + odd.log_mass);
      r.distance = quad_sum(even.distance + odd.distance);
      r.argmax = argmax[i];
    }
    return r;
  }

  // Scores to probabilities; the columns so far are rescaled unless the span is fresh.
  __device__ __forceinline__ void soften(const FastAttention& f, float (&s)[32], float (&z)[C::kWidth / 2],
                                         float (&mass)[4], const RowPair& r, int first_key, int quad, bool fresh) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float before = highest[i];
      float now = before;
#pragma unroll
      for (int j = 0; j < 8; ++j) now = fmaxf(now, fmaxf(s[4 * j + 2 * i], s[4 * j + 2 * i + 1]));
      now = quad_max(now);
      if (C::kStats && __any_sync(~0U, now > before)) {
        int best = INT32_MAX;
#pragma unroll
        for (int j = 7; j >= 0; --j) {
          if (s[4 * j + 2 * i + 1] == now) best = 8 * j + 1;
          if (s[4 * j + 2 * i] == now) best = 8 * j;
        }
        best = best == INT32_MAX ? best : best + first_key + 2 * quad;
        best = min(best, __shfl_xor_sync(~0U, best, 1));
        best = min(best, __shfl_xor_sync(~0U, best, 2));
        if (now > before) argmax[i] = best;
      }
      const float down = (before - now) * f.unit2, rescale = ex2(down);
      highest[i] = now;
      if (!fresh) {
#pragma unroll
        for (int j = 0; j < C::kWidth / 8; ++j) {
          z[4 * j + 2 * i] *= rescale;
          z[4 * j + 2 * i + 1] *= rescale;
        }
        if (C::kStats) {
          mass[2 * i] *= rescale;
          mass[2 * i + 1] *= rescale;
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float p[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) p[j] = s[4 * j + 2 * i + e];
        const auto lag = static_cast<float>(r.position[i] - first_key - 2 * quad - e);
        chain[i][e].add(ChainBlock<C::kStats>(p, f.unit2, now, lag), down, rescale);
#pragma unroll
        for (int j = 0; j < 8; ++j) s[4 * j + 2 * i + e] = p[j];
      }
    }
  }
};

// What the spans before have summed lies in shared memory, where a thread sees only its own: columns of z first, then
// the sums of its two rows and four class masses.
template <class C>
struct Before {
  float* kept;
  bool any = false;

  __device__ float& at(int i) const { return kept[128 * i]; }
  __device__ float4& columns(int k) const {
    return reinterpret_cast<float4*>(kept - threadIdx.x % 128)[128 * k + threadIdx.x % 128];
  }
  static constexpr int kSums = C::kWidth / 2, kEach = C::kStats ? 5 : 2, kMasses = kSums + 2 * kEach;

  __device__ __forceinline__ RowSums load(int i) const {
    if (!any) return {};
    const int from = kSums + kEach * i;
    RowSums s{.highest = at(from), .total = at(from + 1)};
    if (C::kStats) {
      s.log_mass = at(from + 2);
      s.distance = at(from + 3);
      s.argmax = __float_as_int(at(from + 4));
    }
    return s;
  }
  __device__ __forceinline__ void store(int i, const RowSums& s) const {
    const int from = kSums + kEach * i;
    at(from) = s.highest;
    at(from + 1) = s.total;
    if (C::kStats) {
      at(from + 2) = s.log_mass;
      at(from + 3) = s.distance;
      at(from + 4) = __int_as_float(s.argmax);
    }
  }

  // z, mass and the sums given back are those of all spans so far. The last span is not kept.
  __device__ __forceinline__ void merge_span(const Span<C>& span, RowSums (&sums)[2], float (&z)[C::kWidth / 2],
                                             float (&mass)[4], float unit2, bool last) {
    MergeBy by[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[i] = load(i);
      by[i] = merge<C::kStats>(sums[i], span.sums(i), unit2);
      if (!last) store(i, sums[i]);
    }
    if (any) {
#pragma unroll
      for (int k = 0; k < C::kWidth / 8; ++k) {
        const float4 old = columns(k);
        z[4 * k] = fmaf(z[4 * k], by[0].span, old.x * by[0].total);
        z[4 * k + 1] = fmaf(z[4 * k + 1], by[0].span, old.y * by[0].total);
        z[4 * k + 2] = fmaf(z[4 * k + 2], by[1].span, old.z * by[1].total);
        z[4 * k + 3] = fmaf(z[4 * k + 3], by[1].span, old.w * by[1].total);
      }
      if (C::kStats) {
#pragma unroll
        for (int k = 0; k < 4; ++k) mass[k] = fmaf(mass[k], by[k / 2].span, at(kMasses + k) * by[k / 2].total);
      }
    }
    if (last) return;
#pragma unroll
    for (int k = 0; k < C::kWidth / 8; ++k) {
      columns(k) = make_float4(z[4 * k], z[4 * k + 1], z[4 * k + 2], z[4 * k + 3]);
    }
    if (C::kStats) {
#pragma unroll
      for (int k = 0; k < 4; ++k) at(kMasses + k) = mass[k];
    }
    any = true;
  }
};

// Key blocks [begin, end) of rows [first, last] of q in a segment.
__device__ inline SeenKeys blocks_of(const FastAttention& f, const FastSegment& s, int first, int last) {
  const SeenKeys low = seen_keys(f, s.keys, s.position + first - s.first_row),
                 high = seen_keys(f, s.keys, s.position + last - s.first_row);
  const int end = (high.end + kKeyBlock - 1) / kKeyBlock;
  return {min(low.begin / kKeyBlock, end), end};
}

}  // namespace qkv::kernels::cuda
