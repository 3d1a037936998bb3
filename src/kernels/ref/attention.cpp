// Attention forward: one row at a time, keys in blocks at absolute positions, online softmax, no memory of size T x S.
// And the attention pattern, recomputed exactly from q, k and LSE:  A_ij = exp(x_ij - LSE_i).
#include "base/buffer.h"
#include "kernels/ref/attention_scores.h"
#include "kernels/ref/attention_stats.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

constexpr int64_t kKeyBlock = 64;

template <class R>
void attend(const AttentionArgs& a, const QueryRow<R>& row, int64_t head, Buffer<R>& z) {
  const int64_t width = z.size();
  const bool sinks = a.in.sinks.defined();
  R highest = sinks ? In<R>(a.in.sinks)[head] : QueryRow<R>::kHidden;
  R total = sinks ? R{1} : R{0};
  z.fill(0);
  RowStats<R> stats(a.stats, row);

  R scores[kKeyBlock];
  for (int64_t block = row.begin() / kKeyBlock * kKeyBlock; block < row.end(); block += kKeyBlock) {
    const int64_t from = std::max(block, row.begin()), to = std::min(block + kKeyBlock, row.end());
    R block_highest = highest;
    for (int64_t j = from; j < to; ++j) {
      scores[j - block] = row.score(j);
      block_highest = std::max(block_highest, scores[j - block]);
    }
    stats.keep_scores(from, to, [&](int64_t j) { return scores[j - block]; });
    // Everything so far is hidden, or NaN, which compares as not larger.
    const bool nothing = block_highest == QueryRow<R>::kHidden;
    const R rescale = nothing ? R{1} : std::exp(highest - block_highest);
    highest = block_highest;
    total *= rescale;
    for (int64_t c = 0; c < width; ++c) z[c] *= rescale;
    stats.rescale(rescale);
    for (int64_t j = from; j < to; ++j) {
      const R x = scores[j - block];
      if (x == QueryRow<R>::kHidden) continue;
      const R p = std::exp(x - highest);  // NaN stays NaN
      total += p;
      stats.add(j, x, p);
      const R carried = p * row.keep(j);
      const KeyRow<R> v = row.value(j);
      for (int64_t c = 0; c < width; ++c) z[c] += carried * v[c];
    }
  }

  const R lse = total != 0 ? highest + std::log(total) : QueryRow<R>::kHidden;
  const Out<R> out(a.z, {row.row(), head});
  for (int64_t c = 0; c < width; ++c) out.set(c, total != 0 ? z[c] / total : R{0});
  Out<R>(a.lse, {row.row()}).set(head, lse);
  stats.write(head, total, lse);
}

template <class R>
R shown(const AttentionPatternArgs& a, const QueryRow<R>& row, int64_t head, int64_t j) {
  using Stage = AttentionPatternArgs::Stage;
  if (a.in.table.defined() && !row.sees(j))
    return a.stage == Stage::probs ? R{0} : QueryRow<R>::kHidden;  // its page may be gone
  if (a.stage == Stage::raw) return row.raw(j);
  if (a.stage == Stage::capped) return row.capped(row.raw(j));
  const R x = row.sees(j) ? row.score(j) : QueryRow<R>::kHidden;
  if (a.stage == Stage::biased) return x;
  return x == QueryRow<R>::kHidden ? R{0} : std::exp(x - In<R>(a.lse, {row.row()})[head]);
}

}  // namespace

void attention(const Split& split, const AttentionArgs& a) {
  in_real(a.lse, [&]<class R>() {
    blank_rows<R>(a, split);
    split(a.in.q.dim(0) * a.in.q.dim(1), [&](Range tasks) {
      Buffer<R> z(a.z.dim(2));
      for_query_rows<R>(a.in, tasks, [&](const QueryRow<R>& row, int64_t head) { attend(a, row, head, z); });
    });
  });
}

void attention_pattern(const Split& split, const AttentionPatternArgs& a) {
  in_real(a.out, [&]<class R>() {
    fill(split,
         {.y = a.out,
          .value = a.stage == AttentionPatternArgs::Stage::probs ? 0 : static_cast<double>(QueryRow<R>::kHidden)});
    const int64_t heads = a.in.q.dim(1);
    const auto show = [&](int64_t out_row, const QueryRow<R>& row, int64_t head, int64_t keys) {
      const Out<R> out(a.out, {out_row, head});
      for (int64_t j = 0; j < keys; ++j) out.set(j, shown(a, row, head, j));
    };
    const int64_t rows = a.out.dim(0);
    split(rows, [&](Range range) {
      for (int64_t r = range.begin; r < range.end; ++r) {
        const int64_t n = a.rows.defined() ? a.rows.as<int32_t>()[r] : r;
        for (int64_t s = 0; s < a.in.segments.dim(0); ++s) {
          const Segment& segment = segments_of(a.in)[s];
          if (n < segment.first_row || n >= int64_t{segment.first_row} + segment.rows) continue;
          for (int64_t h = 0; h < heads; ++h) show(r, QueryRow<R>(a.in, s, n - segment.first_row, h), h, segment.keys);
        }
      }
    });
  });
}

}  // namespace qkv::kernels::ref
