// Gradients of attention of any shape, dtype and option; formulas in kernels/ref/attention_backward.cpp. A warp per
// query row and head for dq, a warp per key and its head for dk and dv, which adds its rows in order. No atomics.
#include "kernels/cuda/attention_backward.h"
#include "kernels/cuda/attention_scores.h"
#include "kernels/cuda/kernels.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kMostColumns = 32;
constexpr unsigned kAll = 0xffffffffU;

struct BackwardView {
  AttentionView in;
  View dz, z, lse, delta;
  explicit BackwardView(const AttentionBackwardArgs& a) : in(a.in), dz(a.dz), z(a.z), lse(a.lse), delta(a.delta) {}
};

template <class R>
struct PairGradient {
  R carried = 0, dx = 0, ds = 0;  // p keep, d score after and before the cap
};

// Of one row and key, by one thread.
template <class R>
__device__ PairGradient<R> pair_gradient(const BackwardView& a, const QueryRow<R>& row, int64_t head, int64_t j) {
  const R lse = a.lse.get<R>(a.lse.at(row.row(), head));
  const R capped = row.capped(row.raw(j)), x = row.biased(capped, j);
  if (x == QueryRow<R>::hidden() || lse == QueryRow<R>::hidden()) return {};
  const R p = exp(x - lse), keep = row.keep(j);
  const int64_t slot = row.slot(j), v = row.start(a.in.v, slot), dz = a.dz.at(row.row(), head), width = a.dz.cols();
  const R by = row.factor(a.in.v_scales, slot);
  R dot = 0;
  for (int64_t c = 0; c < width; ++c) dot = fma(a.dz.get<R>(dz + c), by * a.in.v.get<R>(v + c), dot);
  const R dx = p * (keep * dot - a.delta.get<R>(a.delta.at(row.row(), head)));
  const R cap = static_cast<R>(a.in.softcap);
  return {p * keep, dx, cap > 0 ? dx * (1 - capped / cap * (capped / cap)) : dx};
}

// In the order of pair_gradient's product with v, so that a row that sees one key has gradients of exactly zero.
template <class R>
void find_delta(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const int64_t heads = args.z.dim(1), width = args.z.dim(2);
  each_thread(exec, args.z.dim(0) * heads, [=] __device__(int64_t i) {
    const int64_t r = i / heads, h = i % heads, z = a.z.at(r, h), dz = a.dz.at(r, h);
    R dot = 0;
    for (int64_t c = 0; c < width; ++c) dot = fma(a.dz.get<R>(dz + c), a.z.get<R>(z + c), dot);
    a.delta.set(a.delta.at(r, h), dot);
  });
}

template <class R>
void find_dq(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const GradView dq(args.dq);
  if (!args.dq.add) fill(exec, {.y = args.dq.tensor, .value = 0});
  const int64_t heads = args.in.q.dim(1), width = args.in.q.dim(2);
  each_thread(exec, args.in.q.dim(0) * heads * 32, [=] __device__(int64_t i) {
    const int64_t q = i / 32 / heads, head = i / 32 % heads, lane = i % 32, n = a.in.segment_of(q);
    if (n < 0) return;
    const QueryRow<R> row(a.in, n, q - a.in.segment(n).first_row, head);
    R sum[kMostColumns];
    for (R& s : sum) s = 0;
    for (int64_t block = row.begin() / 32 * 32; block < row.end(); block += 32) {
      const int64_t j = block + lane;
      const R ds = row.sees(j) ? pair_gradient(a, row, head, j).ds : R{0};
      for (int k = 0; k < 32; ++k) {
        const R d = __shfl_sync(kAll, ds, k);
        if (!row.sees(block + k)) continue;
        const int64_t slot = row.slot(block + k), from = row.start(a.in.k, slot);
        const R by = row.factor(a.in.k_scales, slot);
#pragma unroll
        for (int e = 0; e < kMostColumns; ++e) {
          if (lane + 32 * e < width) sum[e] = fma(d, by * a.in.k.get<R>(from + lane + 32 * e), sum[e]);
        }
      }
    }
#pragma unroll
    for (int e = 0; e < kMostColumns; ++e) {
      const int64_t c = lane + 32 * e;
      if (c < width) dq.view.put(dq.view.at(q, head, c), static_cast<R>(a.in.scale) * sum[e], true);
    }
  });
}

template <class R>
void find_dk_dv(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const GradView dk(args.dk), dv(args.dv);
  const int64_t kv_heads = args.in.k.dim(1), heads = args.in.q.dim(1), k_width = args.in.k.dim(2),
                v_width = args.in.v.dim(2);
  each_thread(exec, args.in.k.dim(0) * kv_heads * 32, [=] __device__(int64_t i) {
    const int64_t m = i / 32 / kv_heads, g = i / 32 % kv_heads, lane = i % 32;
    R sum_k[kMostColumns], sum_v[kMostColumns];
    for (int e = 0; e < kMostColumns; ++e) sum_k[e] = sum_v[e] = 0;
    for (int64_t n = 0; n < a.in.segment_count; ++n) {
      const SegmentView s = a.in.segment(n);
      const int64_t j = m - s.first_key;
      if (j < 0 || j >= s.keys) continue;
      for (int64_t h = 0; h < heads; ++h) {
        if (a.in.kv_map.id(h) != g) continue;
        for (int64_t block = 0; block < s.rows; block += 32) {
          PairGradient<R> pair;
          bool sees = false;
          if (block + lane < s.rows) {
            const QueryRow<R> row(a.in, n, block + lane, h);
            sees = row.sees(j);
            if (sees) pair = pair_gradient(a, row, h, j);
          }
          for (int k = 0; k < 32; ++k) {
            if (!__shfl_sync(kAll, sees, k)) continue;
            const R ds = __shfl_sync(kAll, pair.ds, k), carried = __shfl_sync(kAll, pair.carried, k);
            const int64_t q = a.in.q.at(s.first_row + block + k, h), dz = a.dz.at(s.first_row + block + k, h);
#pragma unroll
            for (int e = 0; e < kMostColumns; ++e) {
              const int64_t c = lane + 32 * e;
              if (c < k_width) sum_k[e] = fma(ds, a.in.q.get<R>(q + c), sum_k[e]);
              if (c < v_width) sum_v[e] = fma(carried, a.dz.get<R>(dz + c), sum_v[e]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int e = 0; e < kMostColumns; ++e) {
      const int64_t c = lane + 32 * e;
      if (dk && c < k_width) dk.put(dk.view.at(m, g, c), static_cast<R>(a.in.scale) * sum_k[e]);
      if (dv && c < v_width) dv.put(dv.view.at(m, g, c), sum_v[e]);
    }
  });
}

template <class R>
void find_dsinks(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const GradView dsinks(args.dsinks);
  const int64_t heads = args.in.q.dim(1), rows = args.in.q.dim(0);
  each_block(exec, heads, [=] __device__(int64_t h) {
    R total = 0;
    for (int64_t r = threadIdx.x; r < rows; r += kThreads) {
      if (a.in.segment_of(r) < 0) continue;
      total -= exp(a.in.sinks.get<R>(h) - a.lse.get<R>(a.lse.at(r, h))) * a.delta.get<R>(a.delta.at(r, h));
    }
    total = block_sum(total);
    if (threadIdx.x == 0) dsinks.put(h, total);
  });
}

// A block per head and bucket: threads take rows, a row adds its keys of that bucket in order.
template <class R>
void find_dbias(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const GradView dbias(args.dbias);
  const int64_t buckets = args.in.bias.dim(1), rows = args.in.q.dim(0);
  each_block(exec, args.in.q.dim(1) * buckets, [=] __device__(int64_t task) {
    const int64_t h = task / buckets, b = task % buckets;
    R total = 0;
    for (int64_t r = threadIdx.x; r < rows; r += kThreads) {
      const int64_t n = a.in.segment_of(r);
      if (n < 0) continue;
      const QueryRow<R> row(a.in, n, r - a.in.segment(n).first_row, h);
      for (int64_t j = row.begin(); j < row.end(); ++j) {
        if (row.bucket(j) == b) total += pair_gradient(a, row, h, j).dx;
      }
    }
    total = block_sum(total);
    if (threadIdx.x == 0) dbias.put(dbias.view.at(h) + b, total);
  });
}

}  // namespace

void attention_backward(const Exec& exec, const AttentionBackwardArgs& a) noexcept {
  const bool done = attention_backward_wgmma(exec, a);
  in_real(a.lse, [&](auto r) {
    using R = decltype(r);
    if (!done) {
      find_delta<R>(exec, a);
      if (a.dq) find_dq<R>(exec, a);
      if (a.dk || a.dv) find_dk_dv<R>(exec, a);
    }
    if (a.dsinks) find_dsinks<R>(exec, a);
    if (a.dbias) find_dbias<R>(exec, a);
  });
}

}  // namespace qkv::kernels::cuda
