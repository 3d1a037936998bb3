// Attention of any shape, dtype and option, where the fast forms do not take it (attention_fast.cu): a warp per query row and head, keys in blocks of 64 at absolute positions,
// online softmax. And the pattern, computed again from q, k and LSE.
//
// A lane has the scores of keys 64 b + lane and 64 b + lane + 32; sums over the keys of a block are trees. Columns of z
// go over the lanes, and a column adds its keys in order.
#include "kernels/cuda/attention/attention_fast.h"
#include "kernels/cuda/attention/attention_scores.h"
#include "kernels/cuda/kernels.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kMostColumns = 32;  // of z per lane
constexpr unsigned kAll = 0xffffffffU;

struct StatsView {
  View entropy, distance, first, highest, argmax, offsets, at_offset, key_classes, in_class;
  explicit StatsView(const AttentionStats& s)
      : entropy(s.entropy),
        distance(s.distance),
        first(s.first),
        highest(s.highest),
        argmax(s.argmax),
        offsets(s.offsets),
        at_offset(s.at_offset),
        key_classes(s.key_classes),
        in_class(s.in_class) {}
  __device__ bool any() const { return entropy || distance || first || highest || argmax || at_offset || in_class; }
};

// Statistics of one row after the softmax: one more pass over its keys, each probability exact from LSE.
template <class R>
__device__ void write_stats(const StatsView& st, const QueryRow<R>& row, int64_t head, R lse) {
  const int lane = threadIdx.x % 32;
  const int64_t n = row.row(), width = st.in_class ? st.in_class.dims[2] : 0;
  const bool empty = lse == QueryRow<R>::hidden();
  R entropy = 0, distance = 0, best = QueryRow<R>::hidden();
  int64_t at = -1;
  for (int64_t c = lane; c < width; c += 32) st.in_class.set(st.in_class.at(n, head, c), R{0});
  __syncwarp();
  for (int64_t block = row.begin() / 32 * 32; block < row.end(); block += 32) {
    const int64_t j = block + lane;
    const R x = row.sees(j) ? row.score(j) : QueryRow<R>::hidden();
    const R p = x == QueryRow<R>::hidden() || empty ? R{0} : exp(x - lse);
    if (x != QueryRow<R>::hidden()) {
      entropy += p * (lse - x);
      distance += p * static_cast<R>(row.position() - j);
      if (at < 0 || x > best) {
        best = x;
        at = j;
      }
    }
    if (st.in_class) {  // one key after the other: a class adds its keys in order
      const int64_t mine = p != 0 ? st.key_classes.id(row.slot(j)) : -1;
      for (int k = 0; k < 32; ++k) {
        const int64_t c = __shfl_sync(kAll, mine, k);
        const R mass = __shfl_sync(kAll, p, k);
        if (c >= 0 && c % 32 == lane) st.in_class.put(st.in_class.at(n, head, c), mass, true);
      }
    }
  }
  entropy = warp_sum(entropy);
  distance = warp_sum(distance);
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const R other = __shfl_xor_sync(kAll, best, lanes);
    const int64_t other_at = __shfl_xor_sync(kAll, at, lanes);
    if (other_at >= 0 && (at < 0 || other > best || (!(best > other) && other_at < at))) {
      best = other;
      at = other_at;
    }
  }
  const auto probability = [&](int64_t j) {
    if (!row.sees(j) || empty) return R{0};
    const R x = row.score(j);
    return x == QueryRow<R>::hidden() ? R{0} : exp(x - lse);
  };
  if (st.at_offset) {
    for (int64_t o = lane; o < st.offsets.dims[0]; o += 32) {
      st.at_offset.set(st.at_offset.at(n, head, o), probability(row.position() - st.offsets.id(o)));
    }
  }
  if (lane != 0) return;
  if (st.entropy) st.entropy.set(st.entropy.at(n, head), entropy);
  if (st.distance) st.distance.set(st.distance.at(n, head), distance);
  if (st.highest) st.highest.set(st.highest.at(n, head), at < 0 ? R{0} : exp(best - lse));
  if (st.argmax) st.argmax.set(st.argmax.at(n, head), static_cast<int32_t>(at));
  if (st.first) st.first.set(st.first.at(n, head), probability(0));
}

template <class R>
__device__ void attend(const AttentionView& in, const View& z_out, const View& lse_out, const StatsView& st, int64_t n,
                       int64_t r, int64_t head) {
  const QueryRow<R> row(in, n, r, head);
  const int lane = threadIdx.x % 32;
  const int64_t width = z_out.cols();
  R highest = in.sinks ? in.sinks.get<R>(head) : QueryRow<R>::hidden(), total = in.sinks ? R{1} : R{0};
  R z[kMostColumns];
  for (R& v : z) v = 0;
  for (int64_t block = row.begin() / kKeyBlock * kKeyBlock; block < row.end(); block += kKeyBlock) {
    R x[2], p[2];
    R top = highest;
    bool nan = false;
    for (int i = 0; i < 2; ++i) {
      const int64_t j = block + lane + 32 * i;
      x[i] = row.sees(j) ? row.score(j) : QueryRow<R>::hidden();
      nan = nan || x[i] != x[i];
      top = x[i] > top ? x[i] : top;
    }
    top = warp_max(top);
    const bool nothing = top == QueryRow<R>::hidden() && !__any_sync(kAll, nan);
    if (nothing) continue;
    const R rescale = highest == QueryRow<R>::hidden() ? R{0} : exp(highest - top);
    highest = top;
    for (int i = 0; i < 2; ++i) p[i] = x[i] == QueryRow<R>::hidden() ? R{0} : exp(x[i] - highest);
    total = total * rescale + warp_sum(p[0] + p[1]);
    for (R& v : z) v *= rescale;
    for (int i = 0; i < 2; ++i) {
      const int64_t j = block + lane + 32 * i;
      const bool seen = x[i] != QueryRow<R>::hidden();
      const R carried = seen ? p[i] * row.keep(j) : R{0};
      const int64_t slot = seen ? row.slot(j) : -1;
      for (int k = 0; k < 32; ++k) {
        const int64_t s = __shfl_sync(kAll, slot, k);
        const R c = __shfl_sync(kAll, carried, k);
        if (s < 0) continue;
        const int64_t from = row.start(in.v, s);
        const R by = row.factor(in.v_scales, s);
#pragma unroll
        for (int e = 0; e < kMostColumns; ++e) {
          const int64_t column = lane + 32 * e;
          if (column < width) z[e] = fma(c, by * in.v.get<R>(from + column), z[e]);
        }
      }
    }
  }
  const R lse = total != 0 ? highest + log(total) : QueryRow<R>::hidden();
#pragma unroll
  for (int e = 0; e < kMostColumns; ++e) {
    const int64_t column = lane + 32 * e;
    if (column < width) z_out.set(z_out.at(row.row(), head, column), total != 0 ? z[e] / total : R{0});
  }
  if (lane == 0) lse_out.set(lse_out.at(row.row(), head), lse);
  if (st.any()) write_stats(st, row, head, lse);
}

// Rows that belong to no segment.
void blank_rows(const Exec& exec, const AttentionArgs& a) {
  const auto clear = [&](const Tensor& t, double value) {
    if (t.defined()) fill(exec, {.y = t, .value = value});
  };
  clear(a.z, 0);
  clear(a.lse, -INFINITY);
  clear(a.stats.argmax, -1);
  for (const Tensor& t :
       {a.stats.entropy, a.stats.distance, a.stats.first, a.stats.highest, a.stats.at_offset, a.stats.in_class}) {
    clear(t, 0);
  }
}

template <class R>
void attention_as(const Exec& exec, const AttentionArgs& a) {
  blank_rows(exec, a);
  const View lse(a.lse);
  const int64_t heads = a.in.q.dim(1), width = a.z.dim(-1);
  for (int64_t first = 0; first < width; first += 32 * kMostColumns) {  // of z; they do not depend on one another
    const int64_t some = std::min<int64_t>(width - first, 32 * kMostColumns);
    AttentionInput part = a.in;
    part.v = a.in.v.slice(a.in.v.rank() - 1, first, some);
    const AttentionView in(part);
    const View z(a.z.slice(a.z.rank() - 1, first, some));
    const StatsView stats(first == 0 ? a.stats : AttentionStats{});
    each_thread(exec, a.in.q.dim(0) * heads * 32, [=] __device__(int64_t i) {
      const int64_t r = i / 32 / heads, n = in.segment_of(r);
      if (n >= 0) attend<R>(in, z, lse, stats, n, r - in.segment(n).first_row, i / 32 % heads);
    });
  }
}

// More classes than the fast forms count: from their LSE.
void count_many_classes(const Exec& exec, const AttentionArgs& a) {
  fill(exec, {.y = a.stats.in_class, .value = 0});
  const AttentionView in(a.in);
  const View lse(a.lse);
  const StatsView stats({.key_classes = a.stats.key_classes, .in_class = a.stats.in_class});
  const int64_t heads = a.in.q.dim(1);
  each_thread(exec, a.in.q.dim(0) * heads * 32, [=] __device__(int64_t i) {
    const int64_t r = i / 32 / heads, head = i / 32 % heads, n = in.segment_of(r);
    if (n < 0) return;
    const QueryRow<float> row(in, n, r - in.segment(n).first_row, head);
    write_stats(stats, row, head, lse.get<float>(lse.at(r, head)));
  });
}

template <class R>
void pattern_as(const Exec& exec, const AttentionPatternArgs& a) {
  using Stage = AttentionPatternArgs::Stage;
  fill(exec, {.y = a.out, .value = a.stage == Stage::probs ? 0 : -INFINITY});
  const AttentionView in(a.in);
  const View lse(a.lse), rows(a.rows), out(a.out);
  const Stage stage = a.stage;
  const int64_t heads = a.in.q.dim(1), keys = a.out.cols();
  each_thread(exec, a.out.count(), [=] __device__(int64_t i) {
    const int64_t j = i % keys, head = i / keys % heads, r = i / keys / heads, q = rows ? rows.id(r) : r;
    const int64_t n = in.segment_of(q);
    if (n < 0 || j >= in.segment(n).keys) return;
    const QueryRow<R> row(in, n, q - in.segment(n).first_row, head);
    R shown;
    if (in.table && !row.sees(j)) {  // its page may be gone
      shown = stage == Stage::probs ? R{0} : QueryRow<R>::hidden();
    } else if (stage == Stage::raw) {
      shown = row.raw(j);
    } else if (stage == Stage::capped) {
      shown = row.capped(row.raw(j));
    } else {
      const R x = row.sees(j) ? row.score(j) : QueryRow<R>::hidden();
      shown = stage == Stage::biased ? x : x == QueryRow<R>::hidden() ? R{0} : exp(x - lse.get<R>(lse.at(q, head)));
    }
    out.set(out.at(r, head, j), shown);
  });
}

}  // namespace

void attention(const Exec& exec, const AttentionArgs& a) noexcept {
  if (attend_fast(exec, a)) {
    if (a.stats.in_class.defined() && a.stats.in_class.dim(2) > kMostClasses) count_many_classes(exec, a);
    return;
  }
  in_real(a.lse, [&](auto r) { attention_as<decltype(r)>(exec, a); });
}
void attention_pattern(const Exec& exec, const AttentionPatternArgs& a) noexcept {
  in_real(a.out, [&](auto r) { pattern_as<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda
