// What lies between the projections of a layer and its attention, and both together: decoding's few rows take keys and values
// of this pass where they were made, and write them to the cache when they have attended.
#include "kernels/cuda/attention/attention_fast.h"
#include "kernels/cuda/attention/cache_heads.h"
#include "kernels/cuda/kernels.h"

namespace qkv::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) run_cache_heads(const __grid_constant__ CacheHeads a) {
  let_next_start();
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.tasks) return wait_for_last();
  const CacheHeads::Task task = a.prepare(i);
  wait_for_last();
  a.run(task);
}

CacheHeads::Heads heads_of(const Tensor& from, const Tensor& to, int64_t pairs, bool cached) {
  constexpr int64_t kPack = CacheHeads::kPack;
  return {.from = CacheHeads::Bf16(from),
          .to = CacheHeads::Bf16(to),
          .heads = static_cast<uint32_t>(from.dim(1)),
          .turning = static_cast<uint32_t>(pairs / kPack),
          .each = static_cast<uint32_t>(pairs / kPack + (from.dim(2) - 2 * pairs) / kPack),
          .cached = cached};
}

}  // namespace

bool make_cache_heads(CacheHeads& to, const CacheHeadsArgs& a) {
  constexpr int kPack = CacheHeads::kPack;
  const int64_t rows = a.q.x.dim(0), pairs = a.q.cos.cols();
  if (rows == 0 || a.to_k.scales.defined() || a.to_v.scales.defined() || pairs % kPack != 0 || a.q.first % kPack != 0 ||
      !packed<__nv_bfloat16>({&a.q.x, &a.q.y, &a.k.x, &a.to_k.y, &a.to_v.x, &a.to_v.y}, kPack) ||
      !packed<float>({&a.q.cos, &a.q.sin}, kPack)) {
    return false;
  }
  to = {.q = heads_of(a.q.x, a.q.y, pairs, false),
        .k = heads_of(a.k.x, a.to_k.y, pairs, true),
        .v = heads_of(a.to_v.x, a.to_v.y, 0, true),
        .cos = Packed<float>(a.q.cos),
        .sin = Packed<float>(a.q.sin),
        .positions = a.q.positions.as<int32_t>(),
        .slots = a.to_k.slots.as<int32_t>(),
        .pairs = static_cast<int>(pairs),
        .first = static_cast<int>(a.q.first),
        .interleaved = a.q.interleaved};
  const auto tasks = [&](const CacheHeads::Heads& h) { return rows * h.heads * h.each; };
  const int64_t all = tasks(to.q) + tasks(to.k) + tasks(to.v);
  if (all > INT32_MAX) return false;
  to.q_tasks = static_cast<uint32_t>(tasks(to.q));
  to.k_tasks = static_cast<uint32_t>(to.q_tasks + tasks(to.k));
  to.tasks = static_cast<uint32_t>(all);
  return true;
}

void cache_heads(const Exec& exec, const CacheHeadsArgs& a) {
  CacheHeads heads;
  if (make_cache_heads(heads, a)) {
    return launch(exec, run_cache_heads, (heads.tasks + kThreads - 1) / kThreads, kThreads, 0, heads);
  }
  rotary(exec, a.q);
  rotary(exec, a.k);
  scatter_rows(exec, a.to_k);
  scatter_rows(exec, a.to_v);
}

void cached_attention(const Exec& exec, const CachedAttentionArgs& a) noexcept {
  if (attend_fresh(exec, a)) return;
  cache_heads(exec, a.heads);
  attention(exec, a.attention);
}

}  // namespace qkv::kernels::cuda
