// One query row and head against its keys: which keys it sees, and its scores before the softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "core/rows.h"
#include "kernels/ref/access.h"

namespace qkv::kernels::ref {

inline const Segment* segments_of(const AttentionInput& in) {
  return in.segments.as<Segment>();
}

// Row of k and v (or slot of the pages) that holds key j of segment n.
inline int64_t key_slot(const AttentionInput& in, int64_t n, int64_t j) {
  if (!in.table.defined()) return segments_of(in)[n].first_key + j;
  const int64_t page = in.k.dim(1);
  return in.table.as<int32_t>()[n * in.table.dim(1) + j / page] * page + j % page;
}

// A key or value row: floats, or bytes times their scale.
template <class R>
class KeyRow {
 public:
  KeyRow(const AttentionInput& in, const Tensor& k, const Tensor& scales, int64_t slot, int64_t head)
      : row_(in.table.defined() ? In<R>(k, {slot / k.dim(1), slot % k.dim(1), head}) : In<R>(k, {slot, head})) {
    if (scales.defined()) scale_ = In<R>(scales, {slot / k.dim(1), slot % k.dim(1)})[head];
  }
  R operator[](int64_t i) const { return scale_ * row_[i]; }

 private:
  In<R> row_;
  R scale_ = 1;
};

template <class R>
class QueryRow {
 public:
  static constexpr R kHidden = -std::numeric_limits<R>::infinity();

  QueryRow(const AttentionInput& in, int64_t segment, int64_t row_in_segment, int64_t head)
      : in_(in),
        segment_(segment),
        row_(row_in_segment),
        head_(head),
        kv_head_(in.kv_map.as<int32_t>()[head]),
        q_(in.q, {segments_of(in)[segment].first_row + row_in_segment, head}) {
    const Segment& s = segments_of(in)[segment];
    position_ = s.position + row_in_segment;
    end_ = s.keys;
    if (in.causal) end_ = std::min<int64_t>(end_, position_ + 1);
    if (in.window > 0) {
      begin_ = std::max<int64_t>(0, position_ - in.window + 1);
      if (!in.causal) end_ = std::min<int64_t>(end_, position_ + in.window);
    }
    if (in.chunk > 0) {
      const int64_t first = position_ / in.chunk * in.chunk;
      begin_ = std::max(begin_, first);
      end_ = std::min(end_, first + in.chunk);
    }
    end_ = std::max<int64_t>(end_, 0);
    begin_ = std::min(begin_, end_);
  }

  int64_t row() const { return segments_of(in_)[segment_].first_row + row_; }  // of q
  int64_t head() const { return head_; }
  int64_t position() const { return position_; }
  int64_t kv_head() const { return kv_head_; }
  int64_t begin() const { return begin_; }  // keys [begin, end) are seen
  int64_t end() const { return end_; }
  bool sees(int64_t j) const { return j >= begin_ && j < end_; }
  int64_t slot(int64_t j) const { return key_slot(in_, segment_, j); }
  KeyRow<R> key(int64_t j) const { return {in_, in_.k, in_.k_scales, slot(j), kv_head_}; }
  KeyRow<R> value(int64_t j) const { return {in_, in_.v, in_.v_scales, slot(j), kv_head_}; }

  R raw(int64_t j) const {
    const KeyRow<R> k = key(j);
    R dot = 0;
    for (int64_t d = 0; d < in_.q.dim(2); ++d) dot += q_[d] * k[d];
    return dot * static_cast<R>(in_.scale);
  }
  R capped(R s) const {
    const R cap = static_cast<R>(in_.softcap);
    return cap > 0 ? cap * std::tanh(s / cap) : s;
  }
  R biased(R s, int64_t j) const {
    if (in_.slopes.defined()) s += In<R>(in_.slopes)[head_] * static_cast<R>(j - position_);
    if (in_.bias.defined()) s += In<R>(in_.bias, {head_})[bucket(j)];
    if (in_.mask.defined()) {
      const Tensor& m = in_.mask;
      s += In<R>(m, {m.dim(0) == 1 ? 0 : segment_, m.dim(1) == 1 ? 0 : head_, row_})[j];
    }
    return s;
  }
  R score(int64_t j) const { return biased(capped(raw(j)), j); }

  int64_t bucket(int64_t j) const {
    const int64_t reach = in_.buckets.count() / 2;
    return in_.buckets.as<int32_t>()[std::clamp(j - position_, -reach, reach) + reach];
  }

  // The dropout factor for the probability of key j: 0 or 1 / (1 - p).
  R keep(int64_t j) const {
    const Dropout& drop = in_.dropout;
    if (drop.p == 0) return 1;
    const uint64_t column = static_cast<uint64_t>(head_) << 32 | static_cast<uint64_t>(j);
    const bool kept = uniform01(random_u32(drop.key, drop.first_row + static_cast<uint64_t>(row()), column)) >= drop.p;
    return kept ? 1 / (1 - static_cast<R>(drop.p)) : R{0};
  }

 private:
  const AttentionInput& in_;
  int64_t segment_, row_, head_, kv_head_;
  In<R> q_;
  int64_t position_ = 0, begin_ = 0, end_ = 0;
};

// Calls f(QueryRow) for every row of every segment, for the heads of a flat (row, head) range of q.
template <class R, class F>
void for_query_rows(const AttentionInput& in, Range tasks, F&& f) {
  const int64_t heads = in.q.dim(1);
  for (int64_t n = 0; n < in.segments.dim(0); ++n) {
    const Segment& s = segments_of(in)[n];
    const int64_t first = std::max<int64_t>(tasks.begin, s.first_row * heads);
    const int64_t last = std::min<int64_t>(tasks.end, (int64_t{s.first_row} + s.rows) * heads);
    for (int64_t task = first; task < last; ++task) {
      f(QueryRow<R>(in, n, task / heads - s.first_row, task % heads), task % heads);
    }
  }
}

}  // namespace qkv::kernels::ref
