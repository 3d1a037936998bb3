// Attention forward for f32 and bf16, keys and values also i8: sixteen query rows at a time against blocks of 64 keys,
// online softmax, no memory of size T x S. Scores are matmul_nt, weighted values matmul_nn. A row's bits are the same
// alone, in a block, cached or not: every row is computed on its own and key blocks start at absolute positions.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_pairs.h"
#include "kernels/cpu/attention_stats.h"
#include "kernels/ref/attention_stats.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;

// Scratch and state a thread keeps from block to block.
struct ForwardState {
  ForwardState(const AttentionArgs& a, Workspace& workspace, const IsaKernels& isa)
      : z(workspace.take(RowBlock::kMost * a.z.dim(2))),
        q(workspace.take(LeftRows::scratch_floats(a.in.q))),
        k(workspace.take(kKeyBlock * a.in.q.cols())),
        v(workspace.take(kKeyBlock * a.z.dim(2))) {
    if (multiplies_pairs_nn(a.in.q, a.in.v, isa)) paired_values.emplace(a.in, a.in.v, workspace);
    if (BlockRowStats::wanted(a.stats)) stats.emplace(a.stats);
  }

  float* z;  // [rows, E]
  float* q;
  float *k, *v;  // [kKeyBlock, D], [kKeyBlock, E]: widened keys and values
  std::optional<PairedKeys> paired_values;
  std::optional<BlockRowStats> stats;
};

class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& a, const RowBlock& block, ForwardState& state)
      : a_(a), block_(block), state_(state), z_(state.z), q_(block, a.in.q, a.in.k, state.q) {
    std::fill(z_, z_ + block.count() * width(), 0.0F);
    for (int64_t r = 0; r < RowBlock::kMost; ++r) {
      const bool sink = r < block.count() && a.in.sinks.defined();
      highest_[r] = sink ? ref::In<float>(a.in.sinks)[block.row(r).head()] : Row::kHidden;
      total_[r] = sink ? 1 : 0;
    }
  }

  void run() {
    if (state_.stats) state_.stats->begin(block_);
    for (int64_t key = block_.begin() / kKeyBlock * kKeyBlock; key < block_.end(); key += kKeyBlock) process_keys(key);
    finish();
  }

 private:
  const IsaKernels& isa() const { return block_.isa(); }
  int64_t width() const { return a_.z.dim(2); }
  Tile scores() { return block_.tile(scores_); }
  Tile probs() { return block_.tile(probs_); }

  void process_keys(int64_t key) {
    q_.multiply(a_.in.k_scales, key, state_.k, scores_);
    if (block_.columns()) {
      step_columns(key);
    } else {
      for (int64_t r = 0; r < block_.count(); ++r) step_row(r, key);
    }
    if (state_.stats) state_.stats->add_singles(key, scores(), probs(), rescale_);
    for (int64_t r = 0; r < block_.count(); ++r) {
      if (rescale_[r] != 1) isa().scale_row(z_ + r * width(), width(), rescale_[r]);
      if (a_.in.dropout.p > 0) block_.apply_dropout(r, key, probs());
    }
    if (state_.paired_values) {
      state_.paired_values->multiply(block_, key, probs(), z_);
    } else if (a_.in.v.dtype() == DType::i8) {
      block_.widen_keys(a_.in.v, a_.in.v_scales, key, state_.v);
      block_.matmul_values(state_.v, width(), key, probs(), z_);
    } else {
      block_.matmul_values(a_.in.v, key, probs(), z_);
    }
  }

  void step_row(int64_t r, int64_t key) {
    SoftmaxStep step{.scores = scores_ + r * kKeyBlock,
                     .probs = probs_ + r * kKeyBlock,
                     .scale = block_.apply_score_rules(r, key, scores()),
                     .highest = highest_[r],
                     .total = total_[r]};
    block_.mask_hidden(r, key, step.scores, Row::kHidden);
    isa().softmax_step(step);
    highest_[r] = step.highest;
    total_[r] = step.total;
    rescale_[r] = step.rescale;
    if (!state_.stats) return;
    const float from = static_cast<float>(block_.row(r).position() - key);
    const BlockStats sums = isa().block_stats(step.scores, step.probs, from);
    const auto* first = std::find(step.scores, step.scores + kKeyBlock, sums.highest);
    state_.stats->add(r, step.rescale, step.mass, sums, key + (first - step.scores));
  }

  void step_columns(int64_t key) {
    const Keys keys = block_.seen(key);
    SoftmaxColumns step{.scores = scores_, .probs = probs_, .from = keys.begin - key, .to = keys.end - key};
    step.alike = block_.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block_.count(); ++r) step.scale = block_.apply_score_rules(r, key, scores());
    std::copy(highest_, highest_ + kColumns, step.highest);
    std::copy(total_, total_ + kColumns, step.total);
    isa().softmax_columns(step);
    std::copy(step.highest, step.highest + kColumns, highest_);
    std::copy(step.total, step.total + kColumns, total_);
    std::copy(step.rescale, step.rescale + kColumns, rescale_);
    if (!state_.stats) return;
    StatsColumns sums{.scores = scores_, .probs = probs_};
    for (int64_t r = 0; r < block_.count(); ++r) {
      sums.from[r] = static_cast<float>(block_.row(r).position() - key);
    }
    isa().stats_columns(sums);
    for (int64_t r = 0; r < block_.count(); ++r) {
      state_.stats->add(r, step.rescale[r], step.mass[r], {sums.mass_x[r], sums.distance[r], sums.highest[r]},
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
      if (state_.stats) state_.stats->write(r, total, lse);
    }
  }

  const AttentionArgs& a_;
  const RowBlock& block_;
  ForwardState& state_;
  float* z_;
  LeftRows q_;
  float scores_[kKeyBlock * RowBlock::kMost], probs_[kKeyBlock * RowBlock::kMost];
  float highest_[RowBlock::kMost], total_[RowBlock::kMost], rescale_[RowBlock::kMost];  // of the running softmax
};

// Whether every row belongs to a segment and is therefore written.
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
  for_row_blocks(exec, a.in, isa, [&](Workspace& workspace) {
    return [&a, state = ForwardState(a, workspace, isa)](const RowBlock& block) mutable {
      ForwardBlock(a, block, state).run();
    };
  });
}

}  // namespace qkv::kernels::cpu
