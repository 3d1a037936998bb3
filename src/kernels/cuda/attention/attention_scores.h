// One query row and head against its keys: which keys it sees, and its scores before the softmax.
#pragma once

#include <cmath>

#include "kernels/cuda/formulas.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

struct SegmentView {
  int64_t first_row, rows, first_key, keys, position;
};

// AttentionInput on the device.
struct AttentionView {
  View q, k, v, k_scales, v_scales, segments, table, kv_map, sinks, slopes, bias, buckets, mask;
  double scale, softcap;
  bool causal;
  int64_t window, chunk, page, reach, segment_count, heads;
  Drop dropout;

  explicit AttentionView(const AttentionInput& in)
      : q(in.q),
        k(in.k),
        v(in.v),
        k_scales(in.k_scales),
        v_scales(in.v_scales),
        segments(in.segments),
        table(in.table),
        kv_map(in.kv_map),
        sinks(in.sinks),
        slopes(in.slopes),
        bias(in.bias),
        buckets(in.buckets),
        mask(in.mask),
        scale(in.scale),
        softcap(in.softcap),
        causal(in.causal),
        window(in.window),
        chunk(in.chunk),
        page(in.table.defined() ? in.k.dim(1) : 1),
        reach(in.buckets.defined() ? in.buckets.count() / 2 : 0),
        segment_count(in.segments.dim(0)),
        heads(in.q.dim(1)),
        dropout(in.dropout) {}

  __device__ SegmentView segment(int64_t n) const {
    return {segments.id(6 * n + 1), segments.id(6 * n + 2), segments.id(6 * n + 3), segments.id(6 * n + 4),
            segments.id(6 * n + 5)};
  }
  // The segment of row r of q; -1 if it belongs to none. Segments need not be in order.
  __device__ int64_t segment_of(int64_t r) const {
    for (int64_t n = 0; n < segment_count; ++n) {
      const int64_t first = segments.id(6 * n + 1);
      if (r >= first && r < first + segments.id(6 * n + 2)) return n;
    }
    return -1;
  }
};

template <class R>
class QueryRow {
 public:
  __device__ QueryRow(const AttentionView& in, int64_t segment, int64_t row_in_segment, int64_t head)
      : in_(in), segment_(segment), row_(row_in_segment), head_(head), kv_head_(in.kv_map.id(head)) {
    const SegmentView s = in.segment(segment);
    first_key_ = s.first_key;
    q_row_ = s.first_row + row_in_segment;
    q_at_ = in.q.at(q_row_, head);
    position_ = s.position + row_in_segment;
    end_ = s.keys;
    if (in.causal && position_ + 1 < end_) end_ = position_ + 1;
    if (in.window > 0) {
      begin_ = position_ - in.window + 1 > 0 ? position_ - in.window + 1 : 0;
      if (!in.causal && position_ + in.window < end_) end_ = position_ + in.window;
    }
    if (in.chunk > 0) {
      const int64_t first = position_ / in.chunk * in.chunk;
      if (begin_ < first) begin_ = first;
      if (end_ > first + in.chunk) end_ = first + in.chunk;
    }
    if (end_ < 0) end_ = 0;
    if (begin_ > end_) begin_ = end_;
  }

  __device__ static R hidden() { return -static_cast<R>(INFINITY); }
  __device__ int64_t row() const { return q_row_; }
  __device__ int64_t position() const { return position_; }
  __device__ int64_t begin() const { return begin_; }
  __device__ int64_t end() const { return end_; }
  __device__ bool sees(int64_t j) const { return j >= begin_ && j < end_; }
  __device__ int64_t slot(int64_t j) const {
    if (!in_.table) return first_key_ + j;
    return in_.table.id(segment_ * in_.table.dims[1] + j / in_.page) * in_.page + j % in_.page;
  }
  // A number of key or value j; `of` has been at slot(j).
  __device__ int64_t start(const View& kv, int64_t s) const {
    return in_.table ? kv.at(s / in_.page, s % in_.page, kv_head_) : kv.at(s, kv_head_);
  }
  __device__ R factor(const View& scales, int64_t s) const {
    return scales ? scales.get<R>(scales.at(s / in_.page, s % in_.page) + kv_head_) : R{1};
  }

  __device__ R raw(int64_t j) const {
    const int64_t s = slot(j), from = start(in_.k, s), width = in_.q.cols();
    const R by = factor(in_.k_scales, s);
    R dot = 0;
    for (int64_t d = 0; d < width; ++d) dot = fma(in_.q.get<R>(q_at_ + d), by * in_.k.get<R>(from + d), dot);
    return dot * static_cast<R>(in_.scale);
  }
  __device__ R capped(R s) const {
    const R cap = static_cast<R>(in_.softcap);
    return cap > 0 ? cap * tanh(s / cap) : s;
  }
  __device__ R biased(R s, int64_t j) const {
    if (in_.slopes) s += in_.slopes.get<R>(head_) * static_cast<R>(j - position_);
    if (in_.bias) s += in_.bias.get<R>(in_.bias.at(head_) + bucket(j));
    if (in_.mask) {
      const View& m = in_.mask;
      s += m.get<R>((m.dims[0] == 1 ? 0 : segment_ * m.strides[0]) + (m.dims[1] == 1 ? 0 : head_ * m.strides[1]) +
                    row_ * m.strides[2] + j);
    }
    return s;
  }
  __device__ R score(int64_t j) const { return biased(capped(raw(j)), j); }
  __device__ int64_t bucket(int64_t j) const {
    const int64_t by = j - position_;
    return in_.buckets.id((by < -in_.reach ? -in_.reach : by > in_.reach ? in_.reach : by) + in_.reach);
  }
  __device__ R keep(int64_t j) const {
    return in_.dropout.template factor<R>(q_row_, static_cast<uint64_t>(head_) << 32 | static_cast<uint64_t>(j));
  }

 private:
  const AttentionView& in_;
  int64_t segment_, row_, head_, kv_head_, first_key_ = 0, q_row_ = 0, q_at_ = 0;
  int64_t position_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace qkv::kernels::cuda
