// Per-row statistics of attention, gathered while the softmax runs.
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
  }

  void rescale(R by) {
    mass_ *= by;
    mass_x_ *= by;
    distance_ *= by;
    for (int64_t c = 0; c < in_class_.size(); ++c) in_class_[c] *= by;
  }
  void add(int64_t j, R x, R p) {
    add_sums(p, p * x, p * static_cast<R>(row_.position() - j));
    add_class(j, p);
    if (beats(x)) lead(j, x);
  }

  // The parts of add(), for who has whole sums.
  void add_sums(R mass, R mass_x, R distance) {
    mass_ += mass;
    mass_x_ += mass_x;
    distance_ += distance;
  }
  bool by_class() const { return in_class_.size() > 0; }
  void add_class(int64_t j, R p) {
    if (by_class()) in_class_[stats_.key_classes.as<int32_t>()[row_.slot(j)]] += p;
  }
  bool beats(R x) const { return argmax_ < 0 || x > highest_; }
  void lead(int64_t j, R x) {
    highest_ = x;
    argmax_ = j;
  }

  // total: sum of all exp(x - max), a sink included.
  void write(int64_t head, R total, R lse) const {
    const int64_t n = row_.row();
    const R norm = total > 0 ? 1 / total : R{0};
    const auto put = [&](const Tensor& t, R value) {
      if (t.defined()) Out<R>(t, {n}).set(head, value);
    };
    put(stats_.entropy, argmax_ < 0 ? R{0} : mass_ * norm * lse - mass_x_ * norm);
    put(stats_.distance, distance_ * norm);
    put(stats_.highest, argmax_ < 0 ? R{0} : std::exp(highest_ - lse));
    put(stats_.argmax, static_cast<R>(argmax_));
    put(stats_.first, probability(0, lse));
    if (stats_.at_offset.defined()) {
      const Out<R> out(stats_.at_offset, {n, head});
      const auto* offsets = stats_.offsets.as<int32_t>();
      for (int64_t o = 0; o < stats_.offsets.count(); ++o) out.set(o, probability(row_.position() - offsets[o], lse));
    }
    for (int64_t c = 0; c < in_class_.size(); ++c) Out<R>(stats_.in_class, {n, head}).set(c, in_class_[c] * norm);
  }

 private:
  R probability(int64_t j, R lse) const {
    if (!row_.sees(j)) return 0;
    const R x = row_.score(j);
    return x == QueryRow<R>::kHidden ? R{0} : std::exp(x - lse);
  }

  const AttentionStats& stats_;
  const QueryRow<R>& row_;
  R mass_ = 0, mass_x_ = 0, distance_ = 0, highest_ = 0;
  int64_t argmax_ = -1;
  Buffer<R> in_class_;
};

// Rows of no segment: nothing seen, nothing brought.
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
