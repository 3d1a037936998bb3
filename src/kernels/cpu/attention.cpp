// Attention forward, f32 and bf16, and keys and values stored otherwise: sixteen query rows at a time against blocks of
// 64 keys, online softmax, nothing of size T x S. Scores are `dots`, the mixed values `mix`; a row's bits are the same
// alone, in a block, cached or not, because both work on every row for itself and blocks start at absolute positions.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_pairs.h"
#include "kernels/cpu/attention_stats.h"
#include "kernels/ref/attention_stats.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;

// What a thread keeps from block to block.
struct ForwardRoom {
  ForwardRoom(const AttentionArgs& a, Room& room, const IsaKernels& isa)
      : z(room.take(RowBlock::kMost * a.z.dim(2))),
        q(room.take(LeftRows::room(a.in.q))),
        k(room.take(kKeyBlock * a.in.q.cols())),
        v(room.take(kKeyBlock * a.z.dim(2))) {
    if (mixes_pairs(a.in.q, a.in.v, isa)) mixer.emplace(a.in, a.in.v, room);
    if (StatsOfRows::wanted(a.stats)) stats.emplace(a.stats);
  }

  float* z;  // [rows, E]
  float* q;
  float *k, *v;  // [kKeyBlock, D], [kKeyBlock, E]: for those that are widened first
  std::optional<KeyMixer> mixer;
  std::optional<StatsOfRows> stats;
};

class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& a, const RowBlock& block, ForwardRoom& room)
      : a_(a), block_(block), room_(room), z_(room.z), q_(block, a.in.q, a.in.k, room.q) {
    std::fill(z_, z_ + block.count() * width(), 0.0F);
    for (int64_t r = 0; r < RowBlock::kMost; ++r) {
      const bool sink = r < block.count() && a.in.sinks.defined();
      highest_[r] = sink ? ref::In<float>(a.in.sinks)[block.row(r).head()] : Row::kHidden;
      total_[r] = sink ? 1 : 0;
    }
  }

  void run() {
    if (room_.stats) room_.stats->begin(block_);
    for (int64_t key = block_.begin() / kKeyBlock * kKeyBlock; key < block_.end(); key += kKeyBlock) walk(key);
    finish();
  }

 private:
  const IsaKernels& isa() const { return block_.isa(); }
  int64_t width() const { return a_.z.dim(2); }
  Tile scores() { return block_.tile(scores_); }
  Tile probs() { return block_.tile(probs_); }

  void walk(int64_t key) {
    q_.meet(a_.in.k_scales, key, room_.k, scores_);
    if (block_.columns()) {
      step_columns(key);
    } else {
      for (int64_t r = 0; r < block_.count(); ++r) step_row(r, key);
    }
    if (room_.stats) room_.stats->add_singles(key, scores(), probs(), rescale_);
    for (int64_t r = 0; r < block_.count(); ++r) {
      if (rescale_[r] != 1) isa().scale_row(z_ + r * width(), width(), rescale_[r]);
      if (a_.in.dropout.p > 0) block_.drop(r, key, probs());
    }
    if (room_.mixer) {
      room_.mixer->mix(block_, key, probs(), z_);
    } else if (a_.in.v.dtype() == DType::i8) {
      block_.widen_keys(a_.in.v, a_.in.v_scales, key, room_.v);
      block_.mix_values(room_.v, width(), key, probs(), z_);
    } else {
      block_.mix_values(a_.in.v, key, probs(), z_);
    }
  }

  void step_row(int64_t r, int64_t key) {
    SoftmaxStep step{.scores = scores_ + r * kKeyBlock,
                     .probs = probs_ + r * kKeyBlock,
                     .scale = block_.finish_scores(r, key, scores()),
                     .highest = highest_[r],
                     .total = total_[r]};
    block_.cover(r, key, step.scores, Row::kHidden);
    isa().softmax_step(step);
    highest_[r] = step.highest;
    total_[r] = step.total;
    rescale_[r] = step.rescale;
    if (!room_.stats) return;
    const float from = static_cast<float>(block_.row(r).position() - key);
    const BlockStats sums = isa().block_stats(step.scores, step.probs, from);
    const auto* first = std::find(step.scores, step.scores + kKeyBlock, sums.highest);
    room_.stats->add(r, step.rescale, step.mass, sums, key + (first - step.scores));
  }

  void step_columns(int64_t key) {
    const Keys keys = block_.seen(key);
    SoftmaxColumns step{.scores = scores_, .probs = probs_, .from = keys.begin - key, .to = keys.end - key};
    step.alike = block_.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block_.count(); ++r) step.scale = block_.finish_scores(r, key, scores());
    std::copy(highest_, highest_ + kColumns, step.highest);
    std::copy(total_, total_ + kColumns, step.total);
    isa().softmax_columns(step);
    std::copy(step.highest, step.highest + kColumns, highest_);
    std::copy(step.total, step.total + kColumns, total_);
    std::copy(step.rescale, step.rescale + kColumns, rescale_);
    if (!room_.stats) return;
    StatsColumns sums{.scores = scores_, .probs = probs_};
    for (int64_t r = 0; r < block_.count(); ++r) {
      sums.from[r] = static_cast<float>(block_.row(r).position() - key);
    }
    isa().stats_columns(sums);
    for (int64_t r = 0; r < block_.count(); ++r) {
      room_.stats->add(r, step.rescale[r], step.mass[r], {sums.mass_x[r], sums.distance[r], sums.highest[r]},
                       key + static_cast<int64_t>(sums.where[r]));
    }
  }

  void finish() {
    for (int64_t r = 0; r < block_.count(); ++r) {
      const Row& row = block_.row(r);
      const float total = total_[r], lse = total != 0 ? highest_[r] + std::log(total) : Row::kHidden;
      float* z = z_ + r * width();
      if (total != 0) {  // NaN is passed on
        isa().divide_row(z, width(), total);
      } else {
        std::fill(z, z + width(), 0.0F);
      }
      put_row(a_.z, row.row(), row.head(), z, isa());
      ref::Out<float>(a_.lse, {row.row()}).set(row.head(), lse);
      if (room_.stats) room_.stats->write(r, total, lse);
    }
  }

  const AttentionArgs& a_;
  const RowBlock& block_;
  ForwardRoom& room_;
  float* z_;
  LeftRows q_;
  float scores_[kKeyBlock * RowBlock::kMost], probs_[kKeyBlock * RowBlock::kMost];
  float highest_[RowBlock::kMost], total_[RowBlock::kMost], rescale_[RowBlock::kMost];  // of the running softmax
};

// Whether every row belongs to a segment, and is therefore written.
bool all_in_segments(const AttentionInput& in) {
  int64_t rows = 0;
  for (int64_t n = 0; n < in.segments.dim(0); ++n) rows += ref::segments_of(in)[n].rows;
  return rows == in.q.dim(0);
}

}  // namespace

void attention(const Exec& exec, const AttentionArgs& a, const IsaKernels& isa) noexcept {
  const ref::Split split(*exec.pool);
  if (!RowBlock::takes(exec, a.in, a.z)) return ref::attention(split, a);
  if (!all_in_segments(a.in)) ref::blank_rows<float>(a, split);
  for_row_blocks(exec, a.in, isa, [&](Room& memory) {
    return
        [&a, room = ForwardRoom(a, memory, isa)](const RowBlock& block) mutable { ForwardBlock(a, block, room).run(); };
  });
}

}  // namespace qkv::kernels::cpu
