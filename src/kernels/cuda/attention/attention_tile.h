// A tile of 64 rows in the registers of a warpgroup: hiding scores, softmax block by block, merging spans, statistics.
// A thread has rows lane / 4 and 8 more of its warp's sixteen, and keys 2 (lane % 4) and one more of every eight.
#pragma once

#include "kernels/cuda/attention/attention_fast.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"

namespace qkv::kernels::cuda {

__device__ inline void warpgroup_sync(int group) {
  __syncwarp();
  if (group == 0) {
    meet<1, 128>();
  } else {
    meet<2, 128>();
  }
}

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

// Adds the masses of eight classes: the probabilities of 16 keys at a time against the keys' rows of `classes`, which
// have a one where a key has the class.
__device__ __forceinline__ void count_classes(float (&mass)[4], const uint32_t (&p)[4][4], uint32_t classes, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t b[4];
    read_fragments_transposed(b, classes + kClassBytes * (32 * half + lane));
    mma(mass, p[2 * half], b[0], b[1]);
    mma(mass, p[2 * half + 1], b[2], b[3]);
  }
}

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}

// The highest score of each row so far, and its key.
struct Best {
  float score[2] = {kHidden, kHidden};
  int key[2] = {-1, -1};

  // Some row i of the warp has a `highest` above those of the blocks before: finds the lowest key that has it.
  __device__ __forceinline__ void find(const float (&s)[32], int i, float highest, int first_key, int quad) {
    int at = INT32_MAX;
#pragma unroll
    for (int j = 15; j >= 0; --j) {
      if (s[4 * (j / 2) + 2 * i + j % 2] == highest) at = 8 * (j / 2) + j % 2;
    }
    at = at == INT32_MAX ? at : at + first_key + 2 * quad;
    at = min(at, __shfl_xor_sync(~0U, at, 1));
    at = min(at, __shfl_xor_sync(~0U, at, 2));
    if (highest > score[i]) key[i] = at;
    score[i] = fmaxf(score[i], highest);
  }
};

// The span a warpgroup is in: two rows a thread, chains of even and odd keys.
template <class C>
struct Span {
  float highest[2] = {kHidden, kHidden};
  Chain<C::kStats> chain[2][2];

  __device__ __forceinline__ RowSums sums(int i) const {
    const auto& even = chain[i][0];
    const auto& odd = chain[i][1];
    RowSums r{.highest = highest[i], .total = quad_sum(even.total + odd.total)};
    if (C::kStats) {
      r.log_mass = quad_sum(even.log_mass + odd.log_mass);
      r.distance = quad_sum(even.distance + odd.distance);
    }
    return r;
  }

  // Scores to probabilities; the columns so far are rescaled unless the span is fresh.
  __device__ __forceinline__ void soften(const FastAttention& f, float (&s)[32], float (&z)[C::kWidth / 2],
                                         float (&mass)[4], Best& best, const RowPair& r, int first_key, int quad,
                                         bool fresh) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float before = highest[i];
      float now = before;
#pragma unroll
      for (int j = 0; j < 8; ++j) now = fmaxf(now, fmaxf(s[4 * j + 2 * i], s[4 * j + 2 * i + 1]));
      now = quad_max(now);
      if (C::kStats && __any_sync(~0U, now > best.score[i])) best.find(s, i, now, first_key, quad);
      const float down = (before - now) * f.unit2, rescale = fast_exp2(down);
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
  static constexpr int kSums = C::kWidth / 2, kEach = C::kStats ? 4 : 2, kMasses = kSums + 2 * kEach;

  __device__ __forceinline__ RowSums load(int i) const {
    if (!any) return {};
    const int from = kSums + kEach * i;
    RowSums s{.highest = at(from), .total = at(from + 1)};
    if (C::kStats) {
      s.log_mass = at(from + 2);
      s.distance = at(from + 3);
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

// The columns of row i of the thread's two, times `by`, if the row is there. True where one is no number.
template <class C>
__device__ __forceinline__ bool put_columns(const FastAttention& f, const RowPair& r, int i, int head, int quad,
                                            const float (&z)[C::kWidth / 2], float by) {
  __nv_bfloat16* const out = f.z + r.row[i] * f.z_row + head * f.z_head;
  bool bad = false;
#pragma unroll
  for (int j = 0; j < C::kWidth / 8; j += 4) {
    uint32_t v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float low = z[4 * (j + k) + 2 * i] * by, high = z[4 * (j + k) + 2 * i + 1] * by;
      v[k] = pack(low, high);
      bad = bad || low != low || high != high;
    }
    gather_columns(v);
    const int column = 8 * (j + quad);
    if (r.valid[i] && column < f.value_width) {
      *reinterpret_cast<uint4*>(out + column) = make_uint4(v[0], v[1], v[2], v[3]);
    }
  }
  return bad && r.valid[i];
}

// S = q k^T and z = p v, or += unless fresh, of 64 rows and 64 keys; tiles of kWidth columns.
template <int kWidth>
__device__ __forceinline__ void find_scores(float (&s)[32], uint32_t queries, uint32_t keys) {
  __syncwarp();  // wgmma wants whole warps
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    multiply_shared(s, tile_descriptor(queries + k / 4 * kPanel, 16, 1024) + 2 * (k % 4),
                    tile_descriptor(keys + k / 4 * kPanel, 16, 1024) + 2 * (k % 4), k > 0);
  }
  wgmma_commit();
}
template <int kWidth>
__device__ __forceinline__ void add_values(float (&z)[kWidth / 2], const uint32_t (&p)[4][4], uint32_t values,
                                           bool fresh) {
  __syncwarp();  // wgmma wants whole warps
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    multiply_registers<1>(z, p[k], tile_descriptor(values + k * 2048, kPanel, 1024), !fresh || k > 0);
  }
  wgmma_commit();
}
// Values of a block past the segment's may be no numbers: they become zeros. By a warpgroup.
template <int kPanels>
__device__ __forceinline__ void clear_values(uint32_t values, int there, int group) {
  if (there >= kKeyBlock) return;
  for (int i = static_cast<int>(threadIdx.x) % 128 + 8 * max(there, 0); i < 8 * kKeyBlock; i += 128) {
#pragma unroll
    for (int q = 0; q < kPanels; ++q) {
      put_shared(values + q * kPanel + 16 * i, uint4{});
    }
  }
  fence_for_copies();
  warpgroup_sync(group);
}

// Key blocks [begin, end) of rows [first, last] of q in a segment.
__device__ inline SeenKeys blocks_of(const FastAttention& f, const FastSegment& s, int first, int last) {
  const SeenKeys low = seen_keys(f, s.keys, s.position + first - s.first_row),
                 high = seen_keys(f, s.keys, s.position + last - s.first_row);
  const int end = (high.end + kKeyBlock - 1) / kKeyBlock;
  return {min(low.begin / kKeyBlock, end), end};
}

}  // namespace qkv::kernels::cuda
