// Attention with bf16 operands on a CPU that multiplies pairs of bf16: weights are rounded to bf16 and multiplied in
// pairs with pairs of rows. Sums are f32.
//
// A hidden key has weight zero and adds nothing, but 0 * NaN and 0 * inf are NaN. So rows that are not finite are
// detected while packing, and then every sum is computed from the rows it sees alone.
#pragma once

#include "kernels/cpu/attention.h"

namespace qkv::kernels::cpu {

// Whether weighted sums of rows of `right` multiply pairs of bf16. Depends on the dtypes alone.
inline bool multiplies_pairs_nn(const Tensor& left, const Tensor& right, const IsaKernels& isa) {
  return isa.matmul_pairs != nullptr && left.dtype() == DType::bf16 && right.dtype() == DType::bf16;
}

// Up to kKeyBlock rows of bf16 (null: no row), and the same packed as pairs. Set `rows`, then call make().
struct PairedRows {
  explicit PairedRows(float* scratch) : pairs(reinterpret_cast<uint32_t*>(scratch)) {}

  const uint16_t* rows[kKeyBlock];
  uint32_t* pairs;  // [kKeyBlock / 2][wide]
  bool finite = true;

  static int64_t scratch_floats(int64_t cols) { return kKeyBlock / 2 * PairRows::wide(cols); }
  void make(int64_t count, int64_t cols, const IsaKernels& isa) {
    finite = isa.pair_rows({.y = pairs, .rows = rows, .count = count, .cols = cols});
  }
};

// to[lane][c] += sum over i in [begin, end) of weights[i][lane] right[i][c]; pairs of weights are at
// weights[lane * lane_stride + i / 2 * pair_stride].
struct PairMatmul {
  const uint32_t* weights = nullptr;
  int64_t lane_stride = 1, pair_stride = 0;
  int64_t lanes = 0, begin = 0, end = 0;
  float* to = nullptr;
  int64_t cols = 0;
};

// sees(lane, i): whether a lane adds row i. `spare`: scratch for the rows one lane sees.
template <class Sees>
void pair_matmul(const PairMatmul& m, const PairedRows& right, float* spare, const IsaKernels& isa, Sees&& sees) {
  const int64_t first = PairWeights::first(m.begin) / 2, wide = PairRows::wide(m.cols);
  MatmulPairsCall call{.a = m.weights + first * m.pair_stride,
                       .b = right.pairs + first * wide,
                       .y = m.to,
                       .a_lane = m.lane_stride,
                       .a_pair = m.pair_stride,
                       .b_stride = wide,
                       .y_stride = m.cols,
                       .rows = m.lanes,
                       .pairs = (m.end + 1) / 2 - first,
                       .cols = m.cols};
  if (right.finite) return isa.matmul_pairs(call);
  call.rows = 1;
  for (int64_t lane = 0; lane < m.lanes; ++lane, call.a += m.lane_stride, call.y += m.cols) {
    PairedRows seen(spare);
    for (int64_t i = 0; i < kKeyBlock; ++i) {
      seen.rows[i] = i >= m.begin && i < m.end && sees(lane, i) ? right.rows[i] : nullptr;
    }
    seen.make(kKeyBlock, m.cols, isa);
    call.b = seen.pairs + first * wide;
    isa.matmul_pairs(call);
  }
}

// Keys or values packed as pairs, block by block, and their weighted sums for a block of rows. Packed blocks are cached
// while the scratch memory lasts: the row blocks of a head use the same keys one after the other.
class PairedKeys {
 public:
  PairedKeys(const AttentionInput& in, const Tensor& t, Workspace& workspace) : in_(in), keys_(t) {
    const int64_t floats = PairedRows::scratch_floats(t.cols());
    spare_ = workspace.take(floats);
    count_ = std::clamp<int64_t>(workspace.left() / floats, 1, kMostKept);
    kept_ = workspace.take(count_ * floats);
  }

  // to[r] += sum_j weights(r, j) * key j; weights of keys a row does not see are zero.
  void multiply(const RowBlock& block, int64_t key, const Tile& weights, float* to) {
    const Keys seen = block.seen(key);
    if (seen.begin == seen.end) return;
    const IsaKernels& isa = block.isa();
    PairMatmul m{.weights = weights_,
                 .lanes = block.count(),
                 .begin = seen.begin - key,
                 .end = seen.end - key,
                 .to = to,
                 .cols = keys_.cols()};
    if (block.columns()) {
      m.pair_stride = kColumns;
      isa.pair_weights({.y = weights_, .x = weights.data, .begin = m.begin, .end = m.end, .lanes = kColumns});
    } else {
      m.lane_stride = kKeyBlock / 2;
      m.pair_stride = 1;
      isa.narrow(reinterpret_cast<uint16_t*>(weights_), weights.data, block.count() * kKeyBlock);
    }
    pair_matmul(m, at(block, key), spare_, isa, [&](int64_t r, int64_t j) { return block.row(r).sees(key + j); });
  }

 private:
  static constexpr int64_t kMostKept = 512;
  struct Owner {
    int64_t segment = -1, kv_head = 0, key = 0, begin = 0;
    bool finite = true;
  };

  // The keys of a block from the first any row sees to the segment's last: later rows see more of them.
  PairedRows at(const RowBlock& block, int64_t key) {
    const Segment& s = ref::segments_of(in_)[block.segment()];
    const bool reused = s.rows > RowBlock::kMost;  // else all use the first slot, which stays in the cache
    const int64_t slot = reused ? key / kKeyBlock % count_ : 0, kv_head = block.row(0).kv_head();
    PairedRows rows(kept_ + slot * PairedRows::scratch_floats(keys_.cols()));
    const Keys there{block.seen(key).begin, std::min<int64_t>(key + kKeyBlock, s.keys)};
    Owner& owner = owners_[static_cast<size_t>(slot)];
    const bool made =
        owner.segment == block.segment() && owner.kv_head == kv_head && owner.key == key && owner.begin <= there.begin;
    if (made && owner.finite) return rows;
    std::fill(rows.rows, rows.rows + kKeyBlock, nullptr);
    block.for_runs(keys_, there, [&](const void* first, int64_t stride, Keys run) {
      for (int64_t j = run.begin; j < run.end; ++j) {
        rows.rows[j - key] = static_cast<const uint16_t*>(first) + (j - run.begin) * stride;
      }
    });
    rows.make(kKeyBlock, keys_.cols(), block.isa());
    owner = {block.segment(), kv_head, key, there.begin, rows.finite};
    return rows;
  }

  const AttentionInput& in_;
  const Tensor& keys_;
  float *spare_ = nullptr, *kept_ = nullptr;
  int64_t count_ = 0;
  std::array<Owner, kMostKept> owners_;
  alignas(64) uint32_t weights_[kKeyBlock / 2 * kColumns];
};

}  // namespace qkv::kernels::cpu
