// Attention backward, from q, k, v and LSE alone. With x the score that enters the softmax, s the scaled product:
//   p_ij = exp(x_ij - LSE_i)          delta_i = dz_i . z_i
//   dx_ij = p_ij (keep_ij dz_i . v_j - delta_i)          ds_ij = dx_ij (1 - (cap / softcap)^2)
//   dv_j = sum_i p_ij keep_ij dz_i    dq_i = scale sum_j ds_ij k_j    dk_j = scale sum_i ds_ij q_i
//   dbias[h, b] = sum of dx_ij in bucket b     dsink_h = -sum_i exp(sink_h - LSE_i) delta_i
#include "base/buffer.h"
#include "kernels/ref/attention_scores.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

template <class R>
struct PairGradient {
  R carried = 0;  // p_ij keep_ij
  R dx = 0, ds = 0;
};

template <class R>
PairGradient<R> pair_gradient(const AttentionBackwardArgs& a, const QueryRow<R>& row, int64_t head, int64_t j) {
  const R lse = In<R>(a.lse, {row.row()})[head];
  const R capped = row.capped(row.raw(j));
  const R x = row.biased(capped, j);
  if (x == QueryRow<R>::kHidden || lse == QueryRow<R>::kHidden) return {};
  const R p = std::exp(x - lse), keep = row.keep(j);
  const In<R> dz(a.dz, {row.row(), head});
  const KeyRow<R> v = row.value(j);
  R dot = 0;
  for (int64_t c = 0; c < a.dz.dim(2); ++c) dot += dz[c] * v[c];
  const R dx = p * (keep * dot - In<R>(a.delta, {row.row()})[head]);
  const R cap = static_cast<R>(a.in.softcap);
  const R ds = cap > 0 ? dx * (1 - capped / cap * (capped / cap)) : dx;
  return {p * keep, dx, ds};
}

template <class R>
void compute_delta(const AttentionBackwardArgs& a, const Split& split) {
  const int64_t heads = a.z.dim(1);
  split(a.z.dim(0) * heads, [&](Range tasks) {
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const In<R> z(a.z, {task / heads, task % heads}), dz(a.dz, {task / heads, task % heads});
      R dot = 0;
      for (int64_t c = 0; c < a.z.dim(2); ++c) dot += z[c] * dz[c];
      Out<R>(a.delta, {task / heads}).set(task % heads, dot);
    }
  });
}

template <class R>
void find_dq(const AttentionBackwardArgs& a, const Split& split) {
  const Tensor& dq = a.dq.tensor;
  if (!a.dq.add) fill(split, {.y = dq, .value = 0});
  split(dq.dim(0) * dq.dim(1), [&](Range tasks) {
    Buffer<R> sum(dq.dim(2));
    for_query_rows<R>(a.in, tasks, [&](const QueryRow<R>& row, int64_t head) {
      sum.fill(0);
      for (int64_t j = row.begin(); j < row.end(); ++j) {
        const R ds = pair_gradient(a, row, head, j).ds;
        const KeyRow<R> k = row.key(j);
        for (int64_t d = 0; d < sum.size(); ++d) sum[d] += ds * k[d];
      }
      const Out<R> out(dq, {row.row(), head});
      for (int64_t d = 0; d < sum.size(); ++d) out.put(d, static_cast<R>(a.in.scale) * sum[d], true);
    });
  });
}

// Each key and its head is one task: query heads in order, then rows in order.
template <class R>
void compute_dk_dv(const AttentionBackwardArgs& a, const Split& split) {
  const AttentionInput& in = a.in;
  const int64_t kv_heads = in.k.dim(1), heads = in.q.dim(1);
  split(in.k.dim(0) * kv_heads, [&](Range tasks) {
    Buffer<R> dk(in.k.dim(2)), dv(in.v.dim(2));
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t m = task / kv_heads, g = task % kv_heads;
      dk.fill(0);
      dv.fill(0);
      for (int64_t n = 0; n < in.segments.dim(0); ++n) {
        const Segment& s = segments_of(in)[n];
        const int64_t j = m - s.first_key;
        if (j < 0 || j >= s.keys) continue;
        for (int64_t h = 0; h < heads; ++h) {
          if (in.kv_map.as<int32_t>()[h] != g) continue;
          for (int64_t r = 0; r < s.rows; ++r) {
            const QueryRow<R> row(in, n, r, h);
            if (!row.sees(j)) continue;
            const PairGradient<R> pair = pair_gradient(a, row, h, j);
            const In<R> q(in.q, {row.row(), h}), dz(a.dz, {row.row(), h});
            for (int64_t d = 0; d < dk.size(); ++d) dk[d] += pair.ds * q[d];
            for (int64_t c = 0; c < dv.size(); ++c) dv[c] += pair.carried * dz[c];
          }
        }
      }
      const auto put = [&](const Grad& grad, const Buffer<R>& sum, R factor) {
        if (!grad) return;
        const Out<R> out(grad.tensor, {m, g});
        for (int64_t c = 0; c < sum.size(); ++c) out.put(c, factor * sum[c], grad.add);
      };
      put(a.dk, dk, static_cast<R>(in.scale));
      put(a.dv, dv, 1);
    }
  });
}

template <class R>
void find_head_gradients(const AttentionBackwardArgs& a, const Split& split) {
  const AttentionInput& in = a.in;
  split(in.q.dim(1), [&](Range range) {
    for (int64_t h = range.begin; h < range.end; ++h) {
      Buffer<R> dbias(in.bias.defined() ? in.bias.dim(1) : 0);
      R dsink = 0;
      for (int64_t n = 0; n < in.segments.dim(0); ++n) {
        for (int64_t r = 0; r < segments_of(in)[n].rows; ++r) {
          const QueryRow<R> row(in, n, r, h);
          if (a.dsinks) {
            const R p_sink = std::exp(In<R>(in.sinks)[h] - In<R>(a.lse, {row.row()})[h]);
            dsink -= p_sink * In<R>(a.delta, {row.row()})[h];
          }
          if (a.dbias) {
            for (int64_t j = row.begin(); j < row.end(); ++j) dbias[row.bucket(j)] += pair_gradient(a, row, h, j).dx;
          }
        }
      }
      if (a.dsinks) Out<R>(a.dsinks.tensor).put(h, dsink, a.dsinks.add);
      if (a.dbias) {
        for (int64_t b = 0; b < dbias.size(); ++b) Out<R>(a.dbias.tensor, {h}).put(b, dbias[b], a.dbias.add);
      }
    }
  });
}

}  // namespace

void attention_backward(const Split& split, const AttentionBackwardArgs& a) {
  in_real(a.lse, [&]<class R>() {
    compute_delta<R>(a, split);
    if (a.dq) find_dq<R>(a, split);
    if (a.dk || a.dv) compute_dk_dv<R>(a, split);
    if (a.dsinks || a.dbias) find_head_gradients<R>(a, split);
  });
}

}  // namespace qkv::kernels::ref
