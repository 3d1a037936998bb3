// What lies between the projections of a layer and its attention, in one launch: q and k are turned, k and v go to the
// cache. A thread turns eight pairs of a head, or copies as many numbers that stay; the bits of rotary and scatter_rows.
#include "kernels/cuda/attention/rotary.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {
namespace {

using Bf16 = Packed<__nv_bfloat16>;
constexpr int kPack = 8;

// Heads of all rows, in tasks: eight pairs that are turned, or eight numbers that stay.
struct Heads {
  Bf16 from, to;
  uint32_t heads = 1, turning = 0, each = 1;  // tasks of a head: those that turn, all
  bool cached = false;                        // `to` is the cache

  Heads(const Tensor& x, const Tensor& y, int64_t pairs, bool to_cache)
      : from(x),
        to(y),
        heads(static_cast<uint32_t>(x.dim(1))),
        turning(static_cast<uint32_t>(pairs / kPack)),
        each(static_cast<uint32_t>(pairs / kPack + (x.dim(2) - 2 * pairs) / kPack)),
        cached(to_cache) {}
};

struct CacheHeads {
  Heads q, k, v;
  Packed<float> cos, sin;
  const int32_t *positions, *slots;
  int pairs, first;
  bool interleaved;
  uint32_t q_tasks, k_tasks, tasks;
};

__global__ void __launch_bounds__(kThreads) run_cache_heads(const __grid_constant__ CacheHeads a) {
  let_next_start();
  uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.tasks) return wait_for_last();
  const Heads& h = i < a.q_tasks ? a.q : i < a.k_tasks ? a.k : a.v;
  i -= i < a.q_tasks ? 0 : i < a.k_tasks ? a.q_tasks : a.k_tasks;
  const uint32_t row = i / h.each, task = i - row * h.each, token = row / h.heads;
  const bool turns = task < h.turning;
  // Positions, slots and angles are there before the recording begins.
  const int64_t to = h.cached ? int64_t{a.slots[token]} * h.heads + row % h.heads : row;
  float cos[kPack], sin[kPack], one[kPack], two[kPack];
  if (turns) {
    const int64_t position = a.positions[token];
    a.cos.load(position, task * kPack, cos);
    a.sin.load(position, task * kPack, sin);
  }
  wait_for_last();
  if (!turns) {
    const int still = static_cast<int>(task - h.turning) * kPack;
    const int c = h.turning == 0 || still < a.first ? still : still + 2 * a.pairs;
    h.from.load(row, c, one);
    return h.to.store(to, c, one);
  }
  const int pair = static_cast<int>(task) * kPack;
  const int at = a.first + (a.interleaved ? 2 * pair : pair), then = at + (a.interleaved ? kPack : a.pairs);
  h.from.load(row, at, one);
  h.from.load(row, then, two);
  turn_pairs(one, two, cos, sin, a.interleaved);
  h.to.store(to, at, one);
  h.to.store(to, then, two);
}

bool at_once(const Exec& exec, const CacheHeadsArgs& a) {
  const int64_t rows = a.q.x.dim(0), pairs = a.q.cos.cols();
  if (rows == 0 || a.to_k.scales.defined() || a.to_v.scales.defined() || pairs % kPack != 0 || a.q.first % kPack != 0 ||
      !packed<__nv_bfloat16>({&a.q.x, &a.q.y, &a.k.x, &a.to_k.y, &a.to_v.x, &a.to_v.y}, kPack) ||
      !packed<float>({&a.q.cos, &a.q.sin}, kPack)) {
    return false;
  }
  CacheHeads c{.q = Heads(a.q.x, a.q.y, pairs, false),
               .k = Heads(a.k.x, a.to_k.y, pairs, true),
               .v = Heads(a.to_v.x, a.to_v.y, 0, true),
               .cos = Packed<float>(a.q.cos),
               .sin = Packed<float>(a.q.sin),
               .positions = a.q.positions.as<int32_t>(),
               .slots = a.to_k.slots.as<int32_t>(),
               .pairs = static_cast<int>(pairs),
               .first = static_cast<int>(a.q.first),
               .interleaved = a.q.interleaved};
  const auto tasks = [&](const Heads& h) { return rows * h.heads * h.each; };
  const int64_t all = tasks(c.q) + tasks(c.k) + tasks(c.v);
  if (all > INT32_MAX) return false;
  c.q_tasks = static_cast<uint32_t>(tasks(c.q));
  c.k_tasks = static_cast<uint32_t>(c.q_tasks + tasks(c.k));
  c.tasks = static_cast<uint32_t>(all);
  launch<Early::recorded>(exec, run_cache_heads, static_cast<unsigned>((all + kThreads - 1) / kThreads), kThreads, 0,
                          c);
  return true;
}

}  // namespace

void cache_heads(const Exec& exec, const CacheHeadsArgs& a) noexcept {
  if (at_once(exec, a)) return;
  rotary(exec, a.q);
  rotary(exec, a.k);
  scatter_rows(exec, a.to_k);
  scatter_rows(exec, a.to_v);
}

}  // namespace qkv::kernels::cuda
