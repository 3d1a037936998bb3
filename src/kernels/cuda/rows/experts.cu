// Mixture of experts: routing, dispatch (rows sorted by expert), combine, and the load-balance loss.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/rows/row_parts.h"
#include "kernels/cuda/rows/sort.h"
#include "kernels/cuda/stream_memory.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
constexpr R kTiny = static_cast<R>(1e-20);  // keeps a renormalised row finite when every score underflows

// A warp per row, four rows a block: scores and choices of one row lie in shared memory, first computed by all lanes,
// then chosen from by the whole warp.
constexpr int kRouteWarps = 4;

// Scores of one row: softmax or sigmoid of the logits. All lanes work; sums are trees.
template <class R>
__device__ void find_scores(bool sigmoid, const View& logits, int64_t from, int64_t experts, R* scores) {
  const int lane = threadIdx.x % 32;
  if (sigmoid) {
    for (int64_t e = lane; e < experts; e += 32) scores[e] = 1 / (1 + exp(-logits.get<R>(from + e)));
    return __syncwarp();
  }
  R highest = -INFINITY, total = 0;
  for (int64_t e = lane; e < experts; e += 32) {
    const R v = logits.get<R>(from + e);
    highest = v > highest ? v : highest;
  }
  highest = warp_max(highest);
  for (int64_t e = lane; e < experts; e += 32) {
    scores[e] = exp(logits.get<R>(from + e) - highest);
    total += scores[e];
  }
  total = warp_sum(total);
  for (int64_t e = lane; e < experts; e += 32) scores[e] /= total;
  __syncwarp();
}

// Index of the largest entry, the lower one of equals, and takes it out. NaN is never larger.
template <class R>
__device__ int64_t take_best(R* values, int64_t count) {
  const int lane = threadIdx.x % 32;
  R best = -INFINITY;
  int64_t at = count;
  for (int64_t i = lane; i < count; i += 32) {
    if (at == count || values[i] > best) {
      best = values[i];
      at = i;
    }
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const R other = __shfl_xor_sync(0xffffffffU, best, lanes);
    const int64_t other_at = __shfl_xor_sync(0xffffffffU, at, lanes);
    const bool nothing = at == count;
    if (other_at < count && (nothing || other > best || (!(best > other) && other_at < at))) {
      best = other;
      at = other_at;
    }
  }
  __syncwarp();
  if (lane == 0) values[at] = -INFINITY;
  __syncwarp();
  return at;
}

template <class R>
__device__ void keep_best_groups(int64_t groups, int64_t top_groups, R* choice, int64_t experts, R* strength) {
  const int lane = threadIdx.x % 32;
  const int64_t each = experts / groups;
  for (int64_t g = lane; g < groups; g += 32) {
    R first = -INFINITY, second = first;
    for (int64_t e = g * each; e < (g + 1) * each; ++e) {
      if (choice[e] > first) {
        second = first;
        first = choice[e];
      } else {
        second = choice[e] > second ? choice[e] : second;
      }
    }
    strength[g] = each > 1 ? first + second : first;
  }
  __syncwarp();
  R* kept = strength + groups;
  for (int64_t g = lane; g < groups; g += 32) kept[g] = 0;
  __syncwarp();
  for (int64_t i = 0; i < top_groups; ++i) {
    const int64_t g = take_best(strength, groups);
    if (lane == 0) kept[g] = 1;
    __syncwarp();
  }
  for (int64_t e = lane; e < experts; e += 32) {
    if (kept[e / each] == 0) choice[e] = -INFINITY;
  }
  __syncwarp();
}

template <class R, class F>
__global__ void __launch_bounds__(32 * kRouteWarps) run_rows(Recorded recorded, int64_t rows, int64_t numbers, F f) {
  let_next_start(recorded);
  wait_for_last();
  R* mine = reinterpret_cast<R*>(dynamic_shared()) + threadIdx.x / 32 * numbers;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * kRouteWarps + threadIdx.x / 32; r < rows;
       r += static_cast<int64_t>(gridDim.x) * kRouteWarps) {
    f(r, mine);
  }
}

// f(row, numbers of shared memory) for every row, by a warp.
template <class R, class F>
void each_row(const Exec& exec, int64_t rows, int64_t numbers, const F& f) {
  if (rows <= 0) return;
  const auto bytes = static_cast<size_t>(numbers * kRouteWarps) * sizeof(R);
  cudaFuncSetAttribute(run_rows<R, F>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  const auto grid = static_cast<unsigned>(std::min((rows + kRouteWarps - 1) / kRouteWarps, kMostBlocks));
  launch(exec, run_rows<R, F>, grid, 32 * kRouteWarps, bytes, rows, numbers, f);
}

template <class R>
void route_as(const Exec& exec, const RouteArgs& a) {
  const View ids(a.ids), weights(a.weights), logits(a.logits), bias(a.bias);
  const RouteRule rule = a.rule;
  const int64_t experts = a.logits.cols();
  each_row<R>(exec, a.logits.rows(), 2 * experts + 2 * rule.groups, [=] __device__(int64_t r, R * scores) {
    R* choice = scores + experts;
    const int64_t from = logits.row(r);
    const int lane = threadIdx.x % 32;
    find_scores(rule.sigmoid, logits, from, experts, scores);
    for (int64_t e = lane; e < experts; e += 32) {
      const bool never = logits.get<R>(from + e) == -static_cast<R>(INFINITY);  // stays out whatever the bias
      choice[e] = never ? -static_cast<R>(INFINITY) : scores[e] + (bias ? bias.get<R>(e) : R{0});
    }
    __syncwarp();
    if (rule.groups > 1) keep_best_groups(rule.groups, rule.top_groups, choice, experts, choice + experts);
    R total = 0;
    for (int64_t s = 0; s < rule.top_k; ++s) {
      const int64_t e = take_best(choice, experts);
      if (lane == 0) ids.set(r * rule.top_k + s, static_cast<int32_t>(e));
      total += scores[e];
    }
    __syncwarp();
    const R norm = static_cast<R>(rule.scaling) / (rule.renormalise ? total + kTiny<R> : R{1});
    for (int64_t s = lane; s < rule.top_k; s += 32) {
      weights.set(weights.row(r) + s, scores[ids.id(r * rule.top_k + s)] * norm);
    }
    __syncwarp();
  });
}

template <class R>
void route_backward_as(const Exec& exec, const RouteBackwardArgs& a) {
  const GradView dlogits(a.dlogits);
  const View dweights(a.dweights), logits(a.logits), ids(a.ids);
  const RouteRule rule = a.rule;
  const int64_t experts = a.logits.cols(), top_k = rule.top_k;
  each_row<R>(exec, a.logits.rows(), 2 * experts, [=] __device__(int64_t r, R * scores) {
    R* dscores = scores + experts;
    const int lane = threadIdx.x % 32;
    find_scores(rule.sigmoid, logits, logits.row(r), experts, scores);
    for (int64_t e = lane; e < experts; e += 32) dscores[e] = 0;
    R total = kTiny<R>, dot = 0;
    for (int64_t s = 0; s < top_k; ++s) {
      const R score = scores[ids.id(r * top_k + s)];
      total += score;
      dot += dweights.get<R>(dweights.row(r) + s) * score;
    }
    __syncwarp();
    if (lane == 0) {
      const R scaling = static_cast<R>(rule.scaling);
      for (int64_t s = 0; s < top_k; ++s) {
        const R d = dweights.get<R>(dweights.row(r) + s);
        dscores[ids.id(r * top_k + s)] = scaling * (rule.renormalise ? (d - dot / total) / total : d);
      }
    }
    __syncwarp();
    R mean = 0;
    for (int64_t e = lane; e < experts; e += 32) mean += dscores[e] * scores[e];
    mean = warp_sum(mean);
    for (int64_t e = lane; e < experts; e += 32) {
      const R slope = rule.sigmoid ? dscores[e] * (1 - scores[e]) : dscores[e] - mean;
      dlogits.put(dlogits.view.row(r) + e, scores[e] * slope);
    }
    __syncwarp();
  });
}

template <class A, int N>
void dispatch_in(const Exec& exec, const DispatchArgs& a) {
  using R = typename A::Real;
  const A y(a.y), x(a.x);
  const int32_t* order = a.order.as<int32_t>();
  const auto top_k = static_cast<int32_t>(a.top_k);
  each_pack<N>(exec, a.y.rows(), a.y.cols(), [=] __device__(int64_t r, int64_t c) {
    R v[N];
    x.load(order[r] / top_k, c, v);
    y.store(r, c, v);
  });
}

template <class A, int N>
void combine_in(const Exec& exec, const CombineArgs& a) {
  using R = typename A::Real;
  const A y(a.y), z(a.z);
  const View weights(a.weights);
  const int32_t* slots = a.slots.as<int32_t>();
  const int64_t top_k = a.slots.dim(1);
  const bool add = a.add;
  each_pack<N>(exec, a.y.rows(), a.y.cols(), [=] __device__(int64_t r, int64_t c) {
    R total[N] = {};
#pragma unroll A::kUnroll / 2 + 1
    for (int64_t s = 0; s < top_k; ++s) {
      const R w = weights ? weights.get<R>(weights.row(r) + s) : R{1};
      R v[N];
      z.load(slots[r * top_k + s], c, v);
      for (int i = 0; i < N; ++i) total[i] += w * v[i];
    }
    y.put(r, c, total, add);
  });
}

template <class A>
void combine_backward_in(const Exec& exec, const CombineBackwardArgs& a) {
  using R = typename A::Real;
  constexpr int T = kRowBlock;
  const A dz(a.dz.tensor), dy(a.dy), z(a.z);
  const bool add = a.dz.add;
  const GradView dweights(a.dweights);
  const View weights(a.weights);
  const int32_t* slots = a.slots.as<int32_t>();
  const int64_t width = a.dy.cols(), top_k = a.slots.dim(1);
  each_row_by<T>(exec, a.dy.rows() * top_k, [=] __device__(int64_t task) {
    const int64_t r = task / top_k, slot = slots[task];
    const R w = weights ? weights.get<R>(weights.row(r) + task % top_k) : R{1};
    R dot = 0;
    const RowPart<A, T> of_dy(dy, r, width);
    const RowPart<A, T> of_z(z, slot, width);
    of_dy.each_with(of_z, [&](int64_t c, const R(&g)[kRowPack], const R(&v)[kRowPack]) {
      R out[kRowPack];
#pragma unroll
      for (int i = 0; i < kRowPack; ++i) {
        out[i] = w * g[i];
        dot += g[i] * v[i];
      }
      if (dz) dz.put(slot, c, out, add);
    });
    dot = row_sum<T>(dot);
    if (dweights && threadIdx.x % T == 0) dweights.put(dweights.view.row(r) + task % top_k, dot);
  });
}
template <class R>
void router_load_as(const Exec& exec, const RouterLoadArgs& a) {
  const View counts(a.counts), mass(a.mass), logits(a.logits), ids(a.ids);
  const int64_t experts = a.logits.cols(), chosen = a.ids.count(), rows = a.logits.rows();
  // Probabilities of some rows at a time lie in the first half of scratch; the other half is for their sums.
  auto* scores_of = reinterpret_cast<R*>(exec.scratch.data());
  const int64_t half = exec.scratch.count() / 2 / 256 * 256, row_bytes = experts * static_cast<int64_t>(sizeof(R));
  const int64_t at_once = std::max<int64_t>(half / row_bytes / kRowsEach, 1) * kRowsEach;
  Exec rest = exec;
  rest.scratch = exec.scratch.view({exec.scratch.count()}).slice(0, half, exec.scratch.count() - half);
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t some = std::min(at_once, rows - first);
    each_row<R>(exec, some, experts, [=] __device__(int64_t r, R * scores) {
      find_scores(false, logits, logits.row(first + r), experts, scores);
      for (int64_t e = threadIdx.x % 32; e < experts; e += 32) scores_of[r * experts + e] = scores[e];
      __syncwarp();
    });
    sum_rows<R>(
        rest, some, experts, [=] __device__(int64_t r, int64_t e) { return scores_of[r * experts + e]; },
        [=] __device__(int64_t e, R s) { mass.put(e, s, true); });
  }
  auto* chosen_by = reinterpret_cast<int32_t*>(exec.scratch.data());  // counts are integers, so atomics keep them exact
  each_thread(exec, experts, [=] __device__(int64_t e) { chosen_by[e] = 0; });
  each_thread(exec, chosen, [=] __device__(int64_t i) { atomicAdd(&chosen_by[ids.id(i)], 1); });
  each_thread(exec, experts, [=] __device__(int64_t e) { counts.put(e, static_cast<R>(chosen_by[e]), true); });
}

template <class R>
void router_load_backward_as(const Exec& exec, const RouterLoadBackwardArgs& a) {
  const GradView dlogits(a.dlogits);
  const View dmass(a.dmass), logits(a.logits);
  const int64_t experts = a.logits.cols();
  each_row<R>(exec, a.logits.rows(), experts, [=] __device__(int64_t r, R * p) {
    find_scores(false, logits, logits.row(r), experts, p);
    R mean = 0;
    for (int64_t e = threadIdx.x % 32; e < experts; e += 32) mean += p[e] * dmass.get<R>(e);
    mean = warp_sum(mean);
    for (int64_t e = threadIdx.x % 32; e < experts; e += 32) {
      dlogits.put(dlogits.view.row(r) + e, p[e] * (dmass.get<R>(e) - mean));
    }
    __syncwarp();
  });
}

}  // namespace

void route(const Exec& exec, const RouteArgs& a) noexcept {
  in_real(a.logits, [&](auto r) { route_as<decltype(r)>(exec, a); });
}
void route_backward(const Exec& exec, const RouteBackwardArgs& a) noexcept {
  if (a.dlogits) in_real(a.logits, [&](auto r) { route_backward_as<decltype(r)>(exec, a); });
}

void dispatch_plan(const Exec& exec, const DispatchPlanArgs& a) noexcept {
  int32_t *slots = a.slots.as<int32_t>(), *groups = a.groups.as<int32_t>(), *order = a.order.as<int32_t>();
  const int64_t chosen = a.ids.count(), starts = a.groups.count();
  const int64_t ids_bytes = (4 * chosen + 255) / 256 * 256;
  StreamMemory memory(exec);
  std::byte* const room = memory.room(exec, ids_bytes + sort_bytes(chosen));
  if (room == nullptr) return;
  auto* sorted = reinterpret_cast<int32_t*>(room);
  sort_by_id(exec, a.ids.as<int32_t>(), chosen, starts - 1, order, sorted, room + ids_bytes);
  each_thread(exec, std::max(chosen, starts), [=] __device__(int64_t i) {
    if (i < chosen) slots[order[i]] = static_cast<int32_t>(i);
    if (i < starts) groups[i] = static_cast<int32_t>(first_not_below(sorted, chosen, i));
  });
}

void dispatch(const Exec& exec, const DispatchArgs& a) noexcept {
  in_form(a.y, {&a.y, &a.x}, [&]<class A, int N>(A, Count<N>) { dispatch_in<A, N>(exec, a); });
}
void combine(const Exec& exec, const CombineArgs& a) noexcept {
  in_form(a.y, {&a.y, &a.z}, [&]<class A, int N>(A, Count<N>) { combine_in<A, N>(exec, a); });
}
void combine_backward(const Exec& exec, const CombineBackwardArgs& a) noexcept {
  in_form(a.dy, {&a.dz.tensor, &a.dy, &a.z}, [&]<class A>(A, auto) { combine_backward_in<A>(exec, a); });
}
void router_load(const Exec& exec, const RouterLoadArgs& a) noexcept {
  in_real(a.mass, [&](auto r) { router_load_as<decltype(r)>(exec, a); });
}
void router_load_backward(const Exec& exec, const RouterLoadBackwardArgs& a) noexcept {
  if (a.dlogits) in_real(a.dmass, [&](auto r) { router_load_backward_as<decltype(r)>(exec, a); });
}

void balance(const Exec& exec, const BalanceArgs& a) noexcept {
  const View loss(a.loss), counts(a.counts), mass(a.mass);
  const int64_t experts = a.counts.count();
  const double factor = a.factor;
  each_thread(exec, 1, [=] __device__(int64_t) {
    double total = 0;
    for (int64_t e = 0; e < experts; ++e) total += counts.get<double>(e) * mass.get<double>(e);
    loss.set(0, factor * total);
  });
}
void balance_backward(const Exec& exec, const BalanceBackwardArgs& a) noexcept {
  const View dmass(a.dmass), dloss(a.dloss), counts(a.counts);
  const double factor = a.factor;
  each_thread(exec, a.counts.count(),
              [=] __device__(int64_t e) { dmass.set(e, dloss.get<double>(0) * factor * counts.get<double>(e)); });
}

}  // namespace qkv::kernels::cuda
