// Gradients of attention: with the tensor core where it takes them (attention_backward.h), else in the general form.
// Formulas in kernels/ref/attention_backward.cpp.
#include "kernels/cuda/attention/attention_backward.h"
#include "kernels/cuda/attention/attention_gradient.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensor_map.h"

namespace qkv::kernels::cuda {
namespace {

bool map_of(CUtensorMap& map, const Tensor& t) {
  return map_heads(map, t.data(), t.dim(2), t.dim(1), t.dim(0), t.stride(1), t.stride(0), kBlock);
}

bool loads_well(const Tensor& t) {
  return t.dtype() == DType::bf16 && t.rank() == 3 && t.dim(2) <= 128 && t.dim(2) % 8 == 0 && t.dim(0) > 0 &&
         t.dim(0) < INT32_MAX / 2 && t.stride(0) % 8 == 0 && t.stride(1) % 8 == 0 && t.stride(0) > 0 &&
         t.stride(1) > 0 && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
}
bool stores_well(const Grad& g) {
  return !g || loads_well(g.tensor);
}

// Gradients of one tensor in two of its parts are added one after the other, which these forms do not.
bool apart(const Grad& a, const Grad& b) {
  return !a || !b || a.tensor.data() != b.tensor.data();
}

bool takes(const AttentionBackwardArgs& a) {
  const AttentionInput& in = a.in;
  if (!apart(a.dq, a.dk) || !apart(a.dq, a.dv) || !apart(a.dk, a.dv)) return false;
  const bool plain =
      !in.table.defined() && in.softcap == 0 && !in.slopes.defined() && !in.bias.defined() && !in.mask.defined();
  return plain && loads_well(in.q) && loads_well(in.k) && loads_well(in.v) && loads_well(a.dz) && loads_well(a.z) &&
         stores_well(a.dq) && stores_well(a.dk) && stores_well(a.dv) && a.lse.dtype() == DType::f32 &&
         a.delta.dtype() == DType::f32 && in.segments.dim(0) > 0;
}

// False: not a case of these forms.
bool backward_wgmma(const Exec& exec, const AttentionBackwardArgs& a) {
  if (!hopper() || !takes(a)) return false;
  const AttentionInput& in = a.in;
  BackwardMaps maps{};
  if (!map_of(maps.q, in.q) || !map_of(maps.k, in.k) || !map_of(maps.v, in.v) || !map_of(maps.dz, a.dz) ||
      !map_of(maps.z, a.z)) {
    return false;
  }
  const int width = static_cast<int>(std::max(in.q.dim(2), in.v.dim(2)));
  BackwardPass pass{.segments = View(in.segments),
                    .kv_map = reinterpret_cast<const int32_t*>(in.kv_map.data()),
                    .sight = {.causal = in.causal, .window = in.window, .chunk = in.chunk},
                    .scale = static_cast<float>(in.scale),
                    .lse = View(a.lse),
                    .delta = View(a.delta),
                    .dq = HeadGradient(a.dq),
                    .dk = HeadGradient(a.dk),
                    .dv = HeadGradient(a.dv),
                    .heads = static_cast<int>(in.q.dim(1)),
                    .kv_heads = static_cast<int>(in.k.dim(1)),
                    .width = width};
  if (all_short(in) && in.dropout.p == 0 && find_short_wgmma(exec, pass, maps, in.segments.dim(0))) return true;
  Exec rest = exec;  // with the scratch that a mask leaves
  StreamMemory memory(exec), more(exec);
  if (in.dropout.p != 0) {
    pass.drop = find_drop_mask(rest, in, memory);
    if (pass.drop.words == nullptr) return false;
  }
  const TilePlan size = place_plan(rest.scratch.data(), in, dq_tile_rows(width));
  const int64_t stats_bytes = in.q.dim(1) * size.blocks() * kBlock * static_cast<int64_t>(sizeof(float2));
  std::byte* const place = more.room(rest, size.bytes + stats_bytes);
  if (place == nullptr) return false;
  pass.plan = place_plan(place, in, dq_tile_rows(width));
  pass.stats = reinterpret_cast<float2*>(place + pass.plan.bytes);
  const GradientViews out{.dq = GradView(a.dq), .dk = GradView(a.dk), .dv = GradView(a.dv), .delta = View(a.delta)};
  make_plan(exec, in, out, pass.plan);
  find_dq_wgmma(exec, pass, maps);
  if (a.dk || a.dv) find_dk_dv_wgmma(exec, pass, maps);
  return true;
}

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

HeadGradient::HeadGradient(const Grad& g) {
  if (!g) return;
  data = reinterpret_cast<__nv_bfloat16*>(g.tensor.data());
  row = g.tensor.stride(0);
  head = g.tensor.stride(1);
  columns = static_cast<int>(g.tensor.dim(2));
  add = g.add;
}

void attention_backward(const Exec& exec, const AttentionBackwardArgs& a) noexcept {
  const bool done = backward_wgmma(exec, a);
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
