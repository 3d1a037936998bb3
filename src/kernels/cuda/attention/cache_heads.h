// Heads of this pass on their way to the cache: q and k are turned, k and v written there. A task is eight pairs of a head
// that are turned, or as many numbers that stay; the bits of rotary and scatter_rows.
#pragma once

#include "kernels/cuda/attention/rotary.h"
#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {

struct CacheHeads {
  static constexpr int kPack = 8;
  using Bf16 = Packed<__nv_bfloat16>;

  struct Heads {
    Bf16 from, to;
    uint32_t heads = 1, turning = 0, each = 1;  // tasks of a head: those that turn, all
    bool cached = false;                        // `to` is the cache
  };
  Heads q, k, v;
  Packed<float> cos, sin;
  const int32_t *positions = nullptr, *slots = nullptr;
  int pairs = 0, first = 0;
  bool interleaved = false;
  uint32_t q_tasks = 0, k_tasks = 0, tasks = 0;  // those of q come first, then k's, v's

  // A task in two steps: what is there before the recording begins (positions, slots, angles), and what this pass makes.
  struct Task {
    const Heads* heads;
    uint32_t row, task;
    int64_t to;
    bool turns;
    float cos[kPack], sin[kPack];
  };
  __device__ Task prepare(uint32_t i) const {
    Task t{.heads = i < q_tasks ? &q : i < k_tasks ? &k : &v};
    i -= i < q_tasks ? 0 : i < k_tasks ? q_tasks : k_tasks;
    t.row = i / t.heads->each;
    t.task = i - t.row * t.heads->each;
    t.turns = t.task < t.heads->turning;
    const uint32_t token = t.row / t.heads->heads;
    t.to = t.heads->cached ? int64_t{slots[token]} * t.heads->heads + t.row % t.heads->heads : t.row;
    if (t.turns) load_angles(token, static_cast<int>(t.task) * kPack, t.cos, t.sin);
    return t;
  }
  __device__ void run(const Task& t) const {
    const Heads& h = *t.heads;
    float one[kPack], two[kPack];
    if (!t.turns) {
      const int still = static_cast<int>(t.task - h.turning) * kPack;
      const int c = h.turning == 0 || still < first ? still : still + 2 * pairs;
      h.from.load(t.row, c, one);
      return h.to.store(t.to, c, one);
    }
    const int pair = static_cast<int>(t.task) * kPack;
    const int at = first + (interleaved ? 2 * pair : pair), then = at + (interleaved ? kPack : pairs);
    h.from.load(t.row, at, one);
    h.from.load(t.row, then, two);
    turn_pairs(one, two, t.cos, t.sin, interleaved);
    h.to.store(t.to, at, one);
    h.to.store(t.to, then, two);
  }

  template <int N>
  __device__ void load_angles(int64_t token, int pair, float (&c)[N], float (&s)[N]) const {
    const int64_t position = positions[token];
    cos.load(position, pair, c);
    sin.load(position, pair, s);
  }
  // Columns [8 chunk, + 8) of a key; heads are turned as wholes, the second half against the first.
  __device__ void key(int64_t token, int head, int chunk, float (&x)[kPack]) const {
    const int half = pairs / kPack, pair = chunk % half * kPack;
    float one[kPack], two[kPack], c[kPack], s[kPack];
    k.from.load(token * k.heads + head, pair, one);
    k.from.load(token * k.heads + head, pair + pairs, two);
    load_angles(token, pair, c, s);
    turn_pairs(one, two, c, s, false);
#pragma unroll
    for (int i = 0; i < kPack; ++i) x[i] = chunk < half ? one[i] : two[i];
  }
  __device__ void value(int64_t token, int head, int chunk, float (&x)[kPack]) const {
    v.from.load(token * v.heads + head, chunk * kPack, x);
  }
};

// False where they do not lie in packs.
bool make_cache_heads(CacheHeads& to, const CacheHeadsArgs& a);

// In one launch, or in four.
void cache_heads(const Exec& exec, const CacheHeadsArgs& a);

}  // namespace qkv::kernels::cuda
