// Per-row statistics of attention, computed during the softmax.
#pragma once

#include "base/buffer.h"
#include "kernels/ref/attention_scores.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {

// The statistics of one row. Sums are kept relative to the running maximum and rescaled with it.
template <class R>
class RowStats {
 public:
  RowStats(const AttentionStats& stats, const QueryRow<R>& row) : stats_(stats), row_(row) {
    if (stats.in_class.defined()) in_class_ = Buffer<R>(stats.in_class.dim(2));
    if (stats.at_offset.defined()) at_offset_ = Buffer<R>(stats.offsets.count());
    at_offset_.fill(QueryRow<R>::kHidden);
  }

  // Keeps the scores of the requested single keys that are in [from, to); score(j) returns them.
  template <class Score>
  void keep_scores(int64_t from, int64_t to, Score&& score) {
    const auto keep = [&](int64_t j, R& x) {
      if (j >= from && j < to) x = score(j);
    };
    keep(0, first_);
    for (int64_t o = 0; o < at_offset_.size(); ++o)
      keep(row_.position() - stats_.offsets.as<int32_t>()[o], at_offset_[o]);
  }

  void rescale(R by) {
    mass_ *= by;
    mass_x_ *= by;
    distance_ *= by;
    for (int64_t c = 0; c < in_class_.size(); ++c) in_class_[c] *= by;
  }
  void add(int64_t j, R x, R p) {
    mass_ += p;
    mass_x_ += p * x;
    distance_ += p * static_cast<R>(row_.position() - j);
    if (in_class_.size() > 0) in_class_[stats_.key_classes.as<int32_t>()[row_.slot(j)]] += p;
    if (argmax_ >= 0 && !(x > highest_)) return;  // NaN is never larger
    highest_ = x;
    argmax_ = j;
  }

  // total: sum of all exp(x - max), a sink included.
  void write(int64_t head, R total, R lse) const {
    const int64_t n = row_.row();
    const R norm = total != 0 ? 1 / total : R{0};
    const auto put = [&](const Tensor& t, R value) {
      if (t.defined()) Out<R>(t, {n}).set(head, value);
    };
    put(stats_.entropy, argmax_ < 0 ? R{0} : mass_ * norm * lse - mass_x_ * norm);
    put(stats_.distance, distance_ * norm);
    put(stats_.highest, argmax_ < 0 ? R{0} : std::exp(highest_ - lse));
    put(stats_.argmax, static_cast<R>(argmax_));
    const auto probability = [&](R x) { return x == QueryRow<R>::kHidden ? R{0} : std::exp(x - lse); };
    put(stats_.first, probability(first_));
    for (int64_t o = 0; o < at_offset_.size(); ++o) {
      Out<R>(stats_.at_offset, {n, head}).set(o, probability(at_offset_[o]));
    }
    for (int64_t c = 0; c < in_class_.size(); ++c) Out<R>(stats_.in_class, {n, head}).set(c, in_class_[c] * norm);
  }

 private:
  const AttentionStats& stats_;
  const QueryRow<R>& row_;
  R mass_ = 0, mass_x_ = 0, distance_ = 0, highest_ = 0;
  int64_t argmax_ = -1;
  R first_ = QueryRow<R>::kHidden;
  Buffer<R> in_class_, at_offset_;
};

// Rows that belong to no segment.
template <class R>
void blank_rows(const AttentionArgs& a, const Split& split) {
  const auto clear = [&](const Tensor& t, double value) {
    if (t.defined()) fill(split, {.y = t, .value = value});
  };
  clear(a.z, 0);
  clear(a.lse, static_cast<double>(QueryRow<R>::kHidden));
  clear(a.stats.argmax, -1);
  for (const Tensor& t :
       {a.stats.entropy, a.stats.distance, a.stats.first, a.stats.highest, a.stats.at_offset, a.stats.in_class}) {
    clear(t, 0);
  }
}

}  // namespace qkv::kernels::ref
