// Gradients of attention: with the tensor core where it takes them (attention_backward.h), else in the general form.
// Formulas in kernels/ref/attention_backward.cpp.
#include "kernels/cuda/attention_backward.h"
#include "kernels/cuda/attention_gradient.h"
#include "kernels/cuda/kernels.h"

namespace qkv::kernels::cuda {
namespace {

// In the order of the product with v, so that a row that sees one key has gradients of exactly zero.
template <class R>
void find_delta(const Exec& exec, const AttentionBackwardArgs& args) {
  const BackwardView a(args);
  const int64_t heads = args.z.dim(1), width = args.z.dim(2);
  each_thread(exec, args.z.dim(0) * heads, [=] __device__(int64_t i) {
    const int64_t r = i / heads, h = i % heads;
    a.delta.set(a.delta.at(r, h), dot<R>(a.dz, a.dz.at(r, h), a.z, a.z.at(r, h), width));
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
  const int64_t buckets = args.in.bias.dim(1), rows = args.in.q.dim(0), width = args.in.q.dim(2),
                v_width = args.in.v.dim(2);
  each_block(exec, args.in.q.dim(1) * buckets, [=] __device__(int64_t task) {
    const int64_t h = task / buckets, b = task % buckets;
    R total = 0;
    for (int64_t r = threadIdx.x; r < rows; r += kThreads) {
      const int64_t n = a.in.segment_of(r);
      if (n < 0) continue;
      const QueryRow<R> row(a.in, n, r - a.in.segment(n).first_row, h);
      for (int64_t j = row.begin(); j < row.end(); ++j) {
        if (row.bucket(j) != b) continue;
        const int64_t slot = row.slot(j);
        const R s = dot<R>(a.in.q, a.in.q.at(r, h), a.in.k, row.start(a.in.k, slot), width);
        const R dp = dot<R>(a.dz, a.dz.at(r, h), a.in.v, row.start(a.in.v, slot), v_width);
        total += pair_gradient(a, row, h, j, s, dp).dx;
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
      find_dq_dk_dv(exec, a);
    }
    if (a.dsinks) find_dsinks<R>(exec, a);
    if (a.dbias) find_dbias<R>(exec, a);
  });
}

}  // namespace qkv::kernels::cuda
