// dq, dk, dv and delta of sequences of up to 128 rows and keys: a block takes one of them and a key head, so that q, k, v
// and dz are read once, and S and dP found once. Orders of sums are those of attention_dq.cu and attention_dk_dv.cu.
//
// Two warpgroups have 64 rows each for S, dP and dq, and 64 keys each for dv and dk. P and then dS pass between them
// through shared memory, where z was before.
#include "kernels/cuda/attention/attention_backward_parts.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kShortThreads = 256, kShortTogether = 2;
constexpr int kHeadBytes = 2 * kPanel, kShortShared = 4 * kHeadBytes + 4 * kPanel + kShortThreads * 16 + 16 + 1024;
constexpr int kSums = 32;  // of 64 x 64, a thread

struct Sequence {
  int first_row, rows, first_key, keys, position;
};

// A sequence and a key head; the query heads that read it and are not done yet, this one being the lowest.
struct ShortTask {
  int number;
  uint32_t heads;
  __device__ int head() const { return __ffs(static_cast<int>(heads)) - 1; }
};

__global__ void __launch_bounds__(kShortThreads, kShortTogether)
    find_short(const __grid_constant__ BackwardMaps maps, const __grid_constant__ BackwardPass pass, int tasks,
               float* kept, bool backwards) {
  uint8_t* const raw = dynamic_shared();
  const uint32_t q_at = (shared_address(raw) + 1023) & ~1023U, dz_at = q_at + kHeadBytes, k_at = dz_at + kHeadBytes,
                 v_at = k_at + kHeadBytes, between = v_at + kHeadBytes, seen_of_all = between + 4 * kPanel,
                 seen_at = seen_of_all + 16 * threadIdx.x, keys_full = seen_of_all + 16 * kShortThreads,
                 rows_full = keys_full + 8;
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0);
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first = group * kBlock + warp * 16 + lane / 4;  // row or key; the thread's other one is 8 further
  if (threadIdx.x == 0) {
    barrier_init(keys_full, 1);
    barrier_init(rows_full, 1);
    fence_for_barriers();
  }
  wait_for_last();
  __syncthreads();

  const auto sequence = [&](int task) {
    const int32_t* s = reinterpret_cast<const int32_t*>(pass.segments.data) +
                       6 * ((backwards ? tasks - 1 - task : task) / pass.kv_heads);
    return Sequence{s[1], s[2], s[3], s[4], s[5]};
  };
  const auto load = [&](uint32_t to, const CUtensorMap& map, int head, int row, uint32_t barrier) {
    for (int b = 0; b < 2; ++b) load_head<64>(to + b * kPanel, &map, head, row + b * kBlock, barrier);
  };
  const auto call_keys = [&](const ShortTask& task) {  // and dz
    if (threadIdx.x != 0 || task.number >= tasks) return;
    const Sequence s = sequence(task.number);
    barrier_expect(keys_full, 3 * kHeadBytes);
    load(k_at, maps.k, task.number % pass.kv_heads, s.first_key, keys_full);
    load(v_at, maps.v, task.number % pass.kv_heads, s.first_key, keys_full);
    load(dz_at, maps.dz, task.head(), s.first_row, keys_full);
  };
  const auto call_rows = [&](const ShortTask& task) {
    if (threadIdx.x != 0 || task.number >= tasks) return;
    const Sequence s = sequence(task.number);
    barrier_expect(rows_full, 2 * kHeadBytes);
    load(between, maps.z, task.head(), s.first_row, rows_full);
    load(q_at, maps.q, task.head(), s.first_row, rows_full);
  };
  const auto put = [&](const HeadGradient& to, int from, int count, int head, const float(&sums)[kSums], float by) {
#pragma unroll
    for (int i = 0; i < 2; ++i) put_row<64>(to, from + first + 8 * i, first + 8 * i < count, head, sums, i, by);
  };
  const auto clear = [&](const HeadGradient& to, const Sequence& s, int head) {
    if (to.data == nullptr || to.add) return;
    for (int r = static_cast<int>(threadIdx.x); r < s.keys; r += kShortThreads) {
#pragma unroll 1
      for (int c = 0; c < to.columns; c += 8) {
        *reinterpret_cast<uint4*>(to.data + (s.first_key + r) * to.row + head * to.head + c) = {};
      }
    }
  };
  const int read_by_lane = lane < pass.heads ? pass.kv_map[lane] : -1;
  // The next one that some head reads; keys that none reads have no gradients.
  const auto find_from = [&](int number) {
    for (; number < tasks; number += static_cast<int>(gridDim.x)) {
      const int kv_head = number % pass.kv_heads;
      const uint32_t heads = __ballot_sync(0xffffffffU, read_by_lane == kv_head);
      if (heads != 0) return ShortTask{number, heads};
      clear(pass.dk, sequence(number), kv_head);
      clear(pass.dv, sequence(number), kv_head);
    }
    return ShortTask{number, 0};
  };
  // Sums over several query heads wait here for the next one.
  const auto kept_at = [&](int i) -> float& {
    return kept[(int64_t{blockIdx.x} * 2 * kSums + i) * kShortThreads + threadIdx.x];
  };
  // P or dS of my rows and block b of keys.
  const auto give = [&](int b, const uint32_t(&of)[4][4]) {
    const int row = warp * 16 + lane % 16;
    const uint32_t to = between + (2 * b + group) * kPanel + row * 128 + (lane / 16 ^ row % 8) * 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) write_fragments(to ^ 32 * k, of[k]);
  };

  const float by = pass.scale * kLog2E;
  const bool sees_all = !pass.sight.causal && pass.sight.window == 0 && pass.sight.chunk == 0;
  uint32_t phase = 0;
  ShortTask task = find_from(static_cast<int>(blockIdx.x));
  call_keys(task);
  call_rows(task);
  for (bool fresh = true; task.number < tasks; phase ^= 1) {
    const Sequence s = sequence(task.number);
    const int head = task.head(), kv_head = task.number % pass.kv_heads;
    const bool last = (task.heads & (task.heads - 1)) == 0;
    const bool whole = sees_all && s.rows == kShort && s.keys == kShort;
    if (!whole) {  // keys that each of the thread's two rows sees
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        const int row = first + 8 * i;
        put_shared(seen_at + 8 * i,
                   row < s.rows ? pass.sight.keys_of(int64_t{s.position} + row, s.keys) : Sight::Interval{0, 0});
      }
    }
    float lse[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = s.first_row + min(first + 8 * i, s.rows - 1);
      lse[i] = s.rows > 0 ? number_at(pass.lse, row, head) : 0;
    }
    const ShortTask next = last ? find_from(task.number + static_cast<int>(gridDim.x))
                                : ShortTask{task.number, task.heads & (task.heads - 1)};

    Left<64, false> q, dz;
    q.take(q_at + group * kPanel, warp, lane);
    dz.take(dz_at + group * kPanel, warp, lane);
    barrier_wait(keys_full, phase);
    barrier_wait(rows_full, phase);
    float delta[2];
    {
      float dots[kSums];
      wgmma_fence();
      dz.multiply(dots, between + group * kPanel);
      wgmma_commit();
      wgmma_wait<0>();
      hold(dots);
      take_diagonal(delta, dots);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (first + 8 * i >= s.rows) {
        lse[i] = delta[i] = 0;
        continue;
      }
      lse[i] *= kLog2E;
      if (lane % 4 == 0) number_at(pass.delta, s.first_row + first + 8 * i, head) = delta[i];
      if (!(fabsf(delta[i]) < INFINITY)) lse[i] = NAN;
    }
    group_barrier(group);  // z has been read by all

    uint32_t ds[2][4][4];
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      float p[kSums], dp[kSums];
      wgmma_fence();
      q.multiply(p, k_at + b * kPanel);
      wgmma_commit();
      dz.multiply(dp, v_at + b * kPanel);
      wgmma_commit();
      wgmma_wait<1>();
      hold(p);
#pragma unroll
      for (int e = 0; e < kSums; ++e) p[e] = fast_exp2(fmaf(p[e], by, -lse[e / 2 % 2]));
      const auto hide_unseen = [&] {
        if (whole) return;
        const Sight::Interval seen[2] = {shared_interval(seen_at), shared_interval(seen_at + 8)};
        hide(p, seen, b * kBlock + 2 * (lane % 4));
      };
      hide_unseen();
      pack(ds[b], p);
      give(b, ds[b]);
      wgmma_wait<0>();
      hold(dp);
#pragma unroll
      for (int e = 0; e < kSums; ++e) p[e] *= dp[e] - delta[e / 2 % 2];
      hide_unseen();
      pack(ds[b], p);
    }
    fence_for_copies();
    uint32_t found = 0;
    if (!whole) found = find_nan<kShortThreads, 3 * kHeadBytes / 16 / kShortThreads>(q_at);  // q, dz, k
    const bool bad = __syncthreads_or(static_cast<int>(found)) != 0;

    // dq of my rows over keys; dv or dk of my keys over rows, with P or dS by columns. Of block b.
    float dq[kSums] = {}, dv[kSums], dk[kSums];
    const auto add_keys = [&](int b) { add_product<64>(dq, ds[b], k_at + b * kPanel); };
    const auto add_rows = [&](float(&sums)[kSums], uint32_t right, int b) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        multiply_shared<1, 1>(sums, tile_descriptor(between + (2 * group + b) * kPanel + k * 2048, kPanel, 1024),
                              tile_descriptor(right + b * kPanel + k * 2048, kPanel, 1024), 1);
      }
    };
    const auto keys_all_see = [&] {  // my rows
      const int last_row = min(s.rows, (group + 1) * kBlock) - 1;
      return Sight::Interval{pass.sight.keys_of(int64_t{s.position} + last_row, s.keys).begin,
                             pass.sight.keys_of(int64_t{s.position} + group * kBlock, s.keys).end};
    };
    const auto rows_that_see_all = [&] {  // of my keys
      const int last_key = min(s.keys, (group + 1) * kBlock) - 1;
      return Sight::Interval{pass.sight.rows_of(last_key, s.position, s.rows).begin,
                             pass.sight.rows_of(group * kBlock, s.position, s.rows).end};
    };
    // add(b) of both blocks where there are NaN or Inf: these become zeros in `right` for blocks of which not all is seen, after
    // they have been added where all is.
    const auto add_slowly = [&](const Sight::Interval& all, uint32_t right, auto add) {
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const bool hides = __any_sync(0xffffffffU, b * kBlock < all.begin || (b + 1) * kBlock > all.end) != 0;
        const auto add_if = [&](bool wanted) {
          if (!wanted) return;
          wgmma_fence();
          add(b);
          wgmma_commit();
          wgmma_wait<0>();
        };
        add_if(!hides);
        __syncthreads();
        drop_nan<kShortThreads, kPanel / 16 / kShortThreads>(right + b * kPanel, right + b * kPanel);
        __syncthreads();
        add_if(hides);
      }
    };
    const auto begin_sums = [&](float(&sums)[kSums], int from) {
#pragma unroll
      for (float& x : sums) x = 0;
      if (fresh) return;
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] = kept_at(from + i);
    };
    const auto end_sums = [&](const float(&sums)[kSums], int from, const HeadGradient& to, float scale) {
      if (last) {
        if (to.data != nullptr) put(to, s.first_key, s.keys, kv_head, sums, scale);
        return;
      }
#pragma unroll
      for (int i = 0; i < kSums; ++i) kept_at(from + i) = sums[i];
    };

    begin_sums(dv, 0);
    if (!bad) {
      wgmma_fence();
      add_keys(0);
      add_keys(1);
      add_rows(dv, dz_at, 0);
      add_rows(dv, dz_at, 1);
      wgmma_commit();
      wgmma_wait<0>();
      hold(dq);
      hold(dv);
    } else {
      add_slowly(keys_all_see(), k_at, add_keys);
      add_slowly(rows_that_see_all(), dz_at, [&](int b) { add_rows(dv, dz_at, b); });
    }
    __syncthreads();  // k, v, dz and P have been read by all
    call_keys(next);
    __syncwarp();
#pragma unroll
    for (int b = 0; b < 2; ++b) give(b, ds[b]);
    fence_for_copies();
    if (pass.dq.data != nullptr) put(pass.dq, s.first_row, s.rows, head, dq, pass.scale);
    end_sums(dv, 0, pass.dv, 1);
    begin_sums(dk, kSums);
    __syncthreads();
    if (!bad) {
      wgmma_fence();
      add_rows(dk, q_at, 0);
      add_rows(dk, q_at, 1);
      wgmma_commit();
      wgmma_wait<0>();
      hold(dk);
    } else {
      add_slowly(rows_that_see_all(), q_at, [&](int b) { add_rows(dk, q_at, b); });
    }
    __syncthreads();  // q and dS too
    call_rows(next);
    __syncwarp();
    end_sums(dk, kSums, pass.dk, pass.scale);
    fresh = last;
    task = next;
  }
}

}  // namespace

bool find_short_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps, int64_t sequences) {
  static const cudaError_t prepared =
      cudaFuncSetAttribute(find_short, cudaFuncAttributeMaxDynamicSharedMemorySize, kShortShared);
  static_cast<void>(prepared);  // else the launch fails, and says so
  const int64_t tasks = sequences * pass.kv_heads, grid = std::min<int64_t>(tasks, multiprocessors() * kShortTogether);
  if (pass.width > 64 || pass.heads > 32 || tasks > INT32_MAX / 2 ||
      grid * 2 * kSums * kShortThreads * static_cast<int64_t>(sizeof(float)) > exec.scratch.count()) {
    return false;
  }
  launch(exec, find_short, static_cast<unsigned>(grid), kShortThreads, kShortShared, maps, pass,
         static_cast<int>(tasks), reinterpret_cast<float*>(exec.scratch.data()), goes_back());
  return true;
}

}  // namespace qkv::kernels::cuda
