// Attention where all is bf16 and the CPU multiplies pairs: weights are rounded to bf16, and pairs of them mix pairs of
// rows. Sums are f32.
//
// A weight of what is hidden is zero, and zero times a number adds nothing; but zero times what is no number is NaN. So
// rows that are not finite are noticed on the way, and then every sum is made of what it sees alone.
#pragma once

#include "kernels/cpu/attention.h"

namespace qkv::kernels::cpu {

// Whether the weights of rows of `left` mix rows of `right` in pairs. Dtypes alone decide.
inline bool mixes_pairs(const Tensor& left, const Tensor& right, const IsaKernels& isa) {
  return isa.mix_into_pairs != nullptr && left.dtype() == DType::bf16 && right.dtype() == DType::bf16;
}

// Up to kKeyBlock rows of bf16, a null where there is none, and the same as pairs. Who makes pairs sets the rows.
struct PairedRows {
  explicit PairedRows(float* room) : pairs(reinterpret_cast<uint32_t*>(room)) {}

  const uint16_t* rows[kKeyBlock];
  uint32_t* pairs;  // [kKeyBlock / 2][wide]
  bool finite = true;

  static int64_t room(int64_t cols) { return kKeyBlock / 2 * PairRows::wide(cols); }
  void make(int64_t count, int64_t cols, const IsaKernels& isa) {
    finite = isa.pair_rows({.y = pairs, .rows = rows, .count = count, .cols = cols});
  }
};

// to[lane][c] += sum over i in [begin, end) of weights[i][lane] right[i][c]; pairs of weights are at
// weights[lane * lane_stride + i / 2 * pair_stride].
struct PairMixing {
  const uint32_t* weights = nullptr;
  int64_t lane_stride = 1, pair_stride = 0;
  int64_t lanes = 0, begin = 0, end = 0;
  float* to = nullptr;
  int64_t cols = 0;
};

// sees(lane, i): whether a lane adds row i at all. `spare`: room for the rows one lane sees.
template <class Sees>
void mix_pairs(const PairMixing& m, const PairedRows& right, float* spare, const IsaKernels& isa, Sees&& sees) {
  const int64_t first = PairWeights::first(m.begin) / 2, wide = PairRows::wide(m.cols);
  PairsMix call{.a = m.weights + first * m.pair_stride,
                .b = right.pairs + first * wide,
                .y = m.to,
                .a_lane = m.lane_stride,
                .a_pair = m.pair_stride,
                .b_stride = wide,
                .y_stride = m.cols,
                .rows = m.lanes,
                .pairs = (m.end + 1) / 2 - first,
                .cols = m.cols};
  if (right.finite) return isa.mix_into_pairs(call);
  call.rows = 1;
  for (int64_t lane = 0; lane < m.lanes; ++lane, call.a += m.lane_stride, call.y += m.cols) {
    PairedRows seen(spare);
    for (int64_t i = 0; i < kKeyBlock; ++i) {
      seen.rows[i] = i >= m.begin && i < m.end && sees(lane, i) ? right.rows[i] : nullptr;
    }
    seen.make(kKeyBlock, m.cols, isa);
    call.b = seen.pairs + first * wide;
    isa.mix_into_pairs(call);
  }
}

// Keys or values as pairs, block by block, and the mixing of them by a block of rows. What was made once is kept as
// long as there is room: the rows of a head meet the same keys one block after the other.
class KeyMixer {
 public:
  KeyMixer(const AttentionInput& in, const Tensor& t, Room& room) : in_(in), keys_(t) {
    const int64_t floats = PairedRows::room(t.cols());
    spare_ = room.take(floats);
    count_ = std::clamp<int64_t>(room.left() / floats, 1, kMostKept);
    kept_ = room.take(count_ * floats);
  }

  // to[r] += sum of weights of row r and key j * key row j; what a row does not see has no weight.
  void mix(const RowBlock& block, int64_t key, const Tile& weights, float* to) {
    const Keys seen = block.seen(key);
    if (seen.begin == seen.end) return;
    const IsaKernels& isa = block.isa();
    PairMixing m{.weights = weights_,
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
    mix_pairs(m, at(block, key), spare_, isa, [&](int64_t r, int64_t j) { return block.row(r).sees(key + j); });
  }

 private:
  static constexpr int64_t kMostKept = 512;
  struct Owner {
    int64_t segment = -1, kv_head = 0, key = 0, begin = 0;
    bool finite = true;
  };

  // The keys of a block from the first any row sees to the segment's last: rows that come later see more of them.
  PairedRows at(const RowBlock& block, int64_t key) {
    const Segment& s = ref::segments_of(in_)[block.segment()];
    const bool met_again = s.rows > RowBlock::kMost;  // else all go through the first, which stays close
    const int64_t slot = met_again ? key / kKeyBlock % count_ : 0, kv_head = block.row(0).kv_head();
    PairedRows rows(kept_ + slot * PairedRows::room(keys_.cols()));
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
