// The gradients at one pair of a row and a key, in any dtype and with every option.
#pragma once

#include "kernels/cuda/attention/attention_scores.h"

namespace qkv::kernels::cuda {

struct BackwardView {
  AttentionView in;
  View dz, z, lse, delta;
  explicit BackwardView(const AttentionBackwardArgs& a) : in(a.in), dz(a.dz), z(a.z), lse(a.lse), delta(a.delta) {}
};

template <class R>
struct PairGradient {
  R carried = 0, dx = 0, ds = 0;  // p keep, d score after and before the cap
};

// From s = q . k and dp = dz . v.
template <class R>
__device__ PairGradient<R> pair_gradient(const BackwardView& a, const QueryRow<R>& row, int64_t head, int64_t j, R s,
                                         R dp) {
  const R lse = a.lse.get<R>(a.lse.at(row.row(), head));
  const R capped = row.capped(s * static_cast<R>(a.in.scale)), x = row.biased(capped, j);
  if (x == QueryRow<R>::hidden() || lse == QueryRow<R>::hidden()) return {};
  const R p = exp(x - lse), keep = row.keep(j);
  const R dx = p * (keep * dp - a.delta.get<R>(a.delta.at(row.row(), head)));
  const R cap = static_cast<R>(a.in.softcap);
  return {p * keep, dx, cap > 0 ? dx * (1 - capped / cap * (capped / cap)) : dx};
}

// x . y over columns, one chain of fused multiply-adds.
template <class R>
__device__ R dot(const View& x, int64_t at_x, const View& y, int64_t at_y, int64_t width) {
  R sum = 0;
  for (int64_t c = 0; c < width; ++c) sum = fma(x.get<R>(at_x + c), y.get<R>(at_y + c), sum);
  return sum;
}

// dq, dk and dv; delta is there.
void find_dq_dk_dv(const Exec& exec, const AttentionBackwardArgs& a);

}  // namespace qkv::kernels::cuda
