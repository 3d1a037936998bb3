// Attention backward for a block of keys: the rows that see it, their products with it, and the gradients of both.
#pragma once

#include "kernels/cpu/attention_gradients.h"
#include "kernels/cpu/attention_pairs.h"

namespace qkv::kernels::cpu {

// Two blocks of rows of one head: tiles sum over 32 rows.
class RowGroup {
 public:
  static constexpr int64_t kBlocks = kBlocksOfGroup, kMost = kBlocks * RowBlock::kMost;

  // Sets the rows from `first` on; returns false if none of them sees a key of the block.
  bool find(const AttentionInput& in, const BlockRows& first, int64_t rows, int64_t key, const IsaKernels& isa) {
    bool any = false;
    for (int64_t b = 0; b < kBlocks; ++b) {
      blocks_[b].reset();
      BlockRows at = first;
      at.row += b * RowBlock::kMost;
      at.rows = std::min(RowBlock::kMost, rows - at.row);
      if (at.rows <= 0) continue;
      const RowBlock& block = blocks_[b].emplace(in, at, isa);
      if (block.seen(key).begin == block.seen(key).end) blocks_[b].reset();
      any = any || blocks_[b];
    }
    return any;
  }
  // f(RowBlock, index of its first row in the group)
  template <class Fn>
  void each(Fn&& f) const {
    for (int64_t b = 0; b < kBlocks; ++b) {
      if (blocks_[b]) f(*blocks_[b], b * RowBlock::kMost);
    }
  }
  bool sees(int64_t r, int64_t key) const { return blocks_[r / RowBlock::kMost]->row(r % RowBlock::kMost).sees(key); }

 private:
  std::optional<RowBlock> blocks_[kBlocks];
};

// A block of keys or values of one head as columns of products with rows, and the sums of its gradient.
class KeyColumns {
 public:
  KeyColumns(const Tensor& t, const Tensor& rows, Workspace& workspace, const IsaKernels& isa)
      : isa_(isa),
        keys_(t),
        left_(rows),
        width_(t.cols()),
        pairs_(multiplies_pairs_nt(t, rows, isa)),
        pairs_nn_(multiplies_pairs_nn(t, rows, isa)),
        columns_(workspace.take(kKeyBlock * width_)),
        sums_(workspace.take(kKeyBlock * width_)),
        rows_(workspace.take(RowGroup::kMost * width_)),
        spare_(workspace.take(PairedRows::scratch_floats(width_))),
        paired_(workspace.take(PairedRows::scratch_floats(width_) / 2)),
        dq_keys_(workspace.take(PairedRows::scratch_floats(width_))) {}

  void begin(int64_t first, int64_t count, int64_t head) {
    for (int64_t j = 0; j < kKeyBlock; j += kColumns) {
      const int64_t some = std::clamp<int64_t>(count - j, 0, kColumns);
      for (int64_t i = 0; i < some; ++i) {
        const FloatRow from = float_row_at(keys_, (first + j + i) * keys_.stride(0) + head * keys_.stride(1));
        float* to = rows_ + i * (pairs_ ? width_ / 2 : width_);
        isa_.scaled_row({to, pairs_}, from, 1, false, width_);
      }
      to_columns(columns_ + j * width_, rows_, some, pairs_ ? width_ / 2 : width_, isa_);
    }
    std::fill(sums_, sums_ + kKeyBlock * width_, 0.0F);
  }
  // For dq: to[r] += sum_j weights[r][j] * key j, for the rows of a block.
  void begin_dq(int64_t first, int64_t count, int64_t head) {
    for (int64_t j = 0; j < kKeyBlock; ++j) {
      dq_keys_.rows[j] = j < count ? static_cast<const uint16_t*>(RowBlock::at(keys_, first + j, head)) : nullptr;
    }
    dq_keys_.make(kKeyBlock, width_, isa_);
  }
  void add_to_dq(const RowBlock& block, int64_t key, const float* weights, float* to) {
    alignas(64) uint32_t pairs[kKeyBlock / 2 * RowBlock::kMost];
    isa_.narrow(reinterpret_cast<uint16_t*>(pairs), weights, block.count() * kKeyBlock);
    const Keys seen = block.seen(key);
    pair_matmul({.weights = pairs,
                 .lane_stride = kKeyBlock / 2,
                 .pair_stride = 1,
                 .lanes = block.count(),
                 .begin = seen.begin - key,
                 .end = seen.end - key,
                 .to = to,
                 .cols = width_},
                dq_keys_, spare_, isa_, [&](int64_t r, int64_t j) { return block.row(r).sees(key + j); });
  }

  // out[r][j] = row r . key j, for the rows of the group from `at` on
  void multiply(const RowBlock& block, int64_t at, float* out) {
    float* wide = rows_ + at * width_;
    if (!pairs_) block.widen_rows(left_, wide);
    const ref::QueryRow<float>& first = block.row(0);
    for (int64_t j = 0; j < kKeyBlock; j += kColumns) {
      MatmulColumnsCall call{.columns = columns_ + j * width_,
                             .rows = wide,
                             .y = out + j,
                             .row_stride = width_,
                             .y_stride = kKeyBlock,
                             .count = block.count(),
                             .inner = width_};
      if (pairs_) {
        call.rows = RowBlock::at(left_, first.row(), first.head());
        call.row_stride = left_.stride(0);
      }
      (pairs_ ? isa_.matmul_columns_bf16 : isa_.matmul_columns)(call);
    }
  }
  // sum(j) += sum_r weights[r][j] * row r, over the rows last multiplied, in order.
  void accumulate(const RowGroup& group, int64_t key, const float* weights) {
    if (pairs_nn_) return accumulate_pairs(group, key, weights);
    group.each([&](const RowBlock& block, int64_t at) {
      isa_.small_matmul_nn_f32({.a = weights + at * kKeyBlock,
                                .b = rows_ + at * width_,
                                .y = sums_,
                                .a_row = 1,
                                .a_inner = kKeyBlock,
                                .b_stride = width_,
                                .y_stride = width_,
                                .rows = kKeyBlock,
                                .inner = block.count(),
                                .cols = width_,
                                .add = true});
    });
  }
  const float* sum(int64_t j) const { return sums_ + j * width_; }

 private:
  void accumulate_pairs(const RowGroup& group, int64_t key, const float* weights) {
    alignas(64) uint32_t pairs[RowGroup::kMost / 2 * kKeyBlock];
    std::fill(paired_.rows, paired_.rows + RowGroup::kMost, nullptr);
    int64_t begin = RowGroup::kMost, end = 0;
    group.each([&](const RowBlock& block, int64_t at) {
      for (int64_t r = 0; r < block.count(); ++r) {
        paired_.rows[at + r] =
            static_cast<const uint16_t*>(RowBlock::at(left_, block.row(r).row(), block.row(r).head()));
      }
      begin = std::min(begin, at);
      end = at + block.count();
    });
    isa_.pair_weights({.y = pairs, .x = weights, .begin = begin, .end = end, .lanes = kKeyBlock});
    paired_.make(RowGroup::kMost, width_, isa_);
    pair_matmul({.weights = pairs,
                 .pair_stride = kKeyBlock,
                 .lanes = kKeyBlock,
                 .begin = begin,
                 .end = end,
                 .to = sums_,
                 .cols = width_},
                paired_, spare_, isa_, [&](int64_t j, int64_t r) { return group.sees(r, key + j); });
  }

  const IsaKernels& isa_;
  const Tensor &keys_, &left_;
  int64_t width_;
  bool pairs_, pairs_nn_;
  float *columns_, *sums_, *rows_, *spare_;
  PairedRows paired_, dq_keys_;
};

}  // namespace qkv::kernels::cpu
