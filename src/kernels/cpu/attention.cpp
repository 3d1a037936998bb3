// Attention forward, f32 and bf16, and keys and values stored otherwise: sixteen query rows at a time against blocks of
// 64 keys, online softmax, nothing of size T x S. Scores are `dots`, the mixed values `mix`; a row's bits are the same
// alone, in a block, cached or not, because both work on every row for itself and blocks start at absolute positions.
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/ref/attention_stats.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;

bool any(const AttentionStats& s) {
  return s.entropy.defined() || s.distance.defined() || s.first.defined() || s.highest.defined() ||
         s.argmax.defined() || s.at_offset.defined() || s.in_class.defined();
}

// The running softmax of one row.
struct Running {
  float highest = Row::kHidden, total = 0;
};

template <const Forms& F>
class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& a, const RowBlock& block, float* scratch)
      : a_(a),
        block_(block),
        z_(scratch),
        q_(z_ + RowBlock::kMost * width()),
        k_(q_ + RowBlock::kMost * a.in.q.cols()),
        v_(k_ + kKeyBlock * a.in.q.cols()) {
    std::fill(z_, z_ + block.count() * width(), 0.0F);
    if (widens_keys()) block.template widen_rows<F>(a.in.q, q_);
    for (int64_t r = 0; r < block.count() && a.in.sinks.defined(); ++r) {
      running_[r] = {ref::In<float>(a.in.sinks)[block.head()], 1};
    }
  }

  void run() {
    const bool counting = any(a_.stats);
    for (int64_t r = 0; r < block_.count() && counting; ++r) stats_[r].emplace(a_.stats, block_.row(r));
    for (int64_t key = block_.begin() / kKeyBlock * kKeyBlock; key < block_.end(); key += kKeyBlock) walk(key);
    finish();
  }

 private:
  int64_t width() const { return a_.z.dim(2); }
  bool widens_keys() const { return a_.in.k.dtype() != a_.in.q.dtype(); }  // else both are read where they lie
  bool widens_values() const { return a_.in.v.dtype() == DType::i8; }

  void walk(int64_t key) {
    float scores[RowBlock::kMost][kKeyBlock], probs[RowBlock::kMost][kKeyBlock];
    if (widens_keys()) {
      block_.template widen_keys<F>(a_.in.k, a_.in.k_scales, key, k_);
      block_.template scores<F>(q_, k_, key, &scores[0][0]);
    } else {
      block_.template scores<F>(a_.in.q, a_.in.k, key, &scores[0][0]);
    }
    for (int64_t r = 0; r < block_.count(); ++r) {
      SoftmaxStep step{.scores = scores[r],
                       .probs = probs[r],
                       .scale = block_.finish_scores(r, key, scores[r]),
                       .highest = running_[r].highest,
                       .total = running_[r].total};
      F.softmax_step(step);
      running_[r] = {step.highest, step.total};
      if (step.rescale != 1) F.scale_row(z_ + r * width(), width(), step.rescale);
      if (stats_[r]) count_row(r, key, step);
      if (a_.in.dropout.p > 0) block_.drop(r, key, probs[r]);
    }
    if (widens_values()) {
      block_.template widen_keys<F>(a_.in.v, a_.in.v_scales, key, v_);
      block_.template mix_values<F>(v_, key, &probs[0][0], z_, width());
    } else {
      block_.template mix_values<F>(a_.in.v, key, &probs[0][0], z_, width());
    }
  }

  void count_row(int64_t r, int64_t key, const SoftmaxStep& step) {
    ref::RowStats<float>& stats = *stats_[r];
    stats.rescale(step.rescale);
    const float from = static_cast<float>(block_.row(r).position() - key);
    const BlockStats sums = F.block_stats(step.scores, step.probs, from);
    if (sums.highest == Row::kHidden) return;
    stats.add_sums(sums.mass, sums.mass_x, sums.distance);
    if (stats.beats(sums.highest)) {
      const auto* first = std::find(step.scores, step.scores + kKeyBlock, sums.highest);
      stats.lead(key + (first - step.scores), sums.highest);
    }
    const Keys seen = block_.seen(r, key);
    for (int64_t j = seen.begin; j < seen.end && stats.by_class(); ++j) stats.add_class(j, step.probs[j - key]);
  }

  void finish() {
    for (int64_t r = 0; r < block_.count(); ++r) {
      const Row& row = block_.row(r);
      const auto [highest, total] = running_[r];
      const float lse = total > 0 ? highest + std::log(total) : Row::kHidden;
      float* z = z_ + r * width();
      for (int64_t c = 0; c < width(); ++c) z[c] = total > 0 ? z[c] / total : 0.0F;
      put_row<F>(a_.z, row.row(), block_.head(), z);
      ref::Out<float>(a_.lse, {row.row()}).set(block_.head(), lse);
      if (stats_[r]) stats_[r]->write(block_.head(), total, lse);
    }
  }

  const AttentionArgs& a_;
  const RowBlock& block_;
  float* z_;            // [rows, E]
  float *q_, *k_, *v_;  // [rows, D], [kKeyBlock, D], [kKeyBlock, E]: what is widened first
  Running running_[RowBlock::kMost];
  std::optional<ref::RowStats<float>> stats_[RowBlock::kMost];
};

}  // namespace

template <const Forms& F>
void attention(const Exec& exec, const AttentionArgs& a) noexcept {
  const ref::Split split(*exec.pool);
  if (!RowBlock::takes(exec, a.in, a.z)) return ref::attention(split, a);
  ref::blank_rows<float>(a, split);
  for_row_blocks(exec, a.in, [&](const RowBlock& block, float* scratch) { ForwardBlock<F>(a, block, scratch).run(); });
}

QKV_FOR_ALL_FORMS(attention, AttentionArgs)

}  // namespace qkv::kernels::cpu
