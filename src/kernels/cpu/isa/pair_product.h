// y[m][n] = sum_k a[m][k] b[n][k], bf16, by pairs (vdpbf16ps). Every sum is one chain over the pairs of k in order, for
// any number of rows: where k is split, partial sums are kept in f32, which rounds nothing.
//
// A register tile is twelve rows of a times a panel of 32 columns of b, 24 accumulators. For each pair of k it loads
// two registers of b and broadcasts twelve pairs of a, for 24 products; lanes are columns and are not added to each
// other.
//
//   strip of a    packed [row][pairs], or [pairs][16 rows] if k is strided    L1 or L2 cache
//   panels of b   right blocks (tile_pack.h)                                  L2 cache
//
// vdpbf16ps is two fused multiply-adds, of a pair's second elements and then of its first, rounded to nearest even;
// denormal operands and results are flushed to zero whatever the thread's float mode.
#pragma once

#include "kernels/cpu/isa/tile_pack.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int kStripRows = 12;
constexpr int64_t kPairStretch = 2048;
constexpr int64_t kStripStride =
    kPairStretch / 2 + kLanes;  // words; a power of two would map all rows to one cache set

struct PairTile {
  const uint32_t* a;
  const uint16_t* b;
  int64_t steps;
  float* sums;  // [12] rows
  int64_t stride;
  bool add;
};

template <int Rows, bool Transposed>
void pair_tile(const PairTile& t) {
  __m512 sums[unsigned{Rows}][2];
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < 2; ++c) {
      sums[r][c] = t.add ? _mm512_loadu_ps(t.sums + r * t.stride + c * kLanes) : _mm512_setzero_ps();
    }
  }
  for (int64_t s = 0; s < t.steps; ++s) {
    const uint16_t* b = t.b + s * kBlockNumbers;
    for (int64_t p = 0; p < kLanes; ++p) {
      const auto low = (__m512bh)_mm512_load_si512(b + p * kBlockSide),
                 high = (__m512bh)_mm512_load_si512(b + p * kBlockSide + kBlockNumbers / 2);
      for (int r = 0; r < Rows; ++r) {
        const int64_t pair = s * kLanes + p;
        const auto two = static_cast<int>(t.a[Transposed ? pair * kLanes + r : r * kStripStride + pair]);
        const auto left = (__m512bh)_mm512_set1_epi32(two);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], left, low);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], left, high);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < 2; ++c) _mm512_storeu_ps(t.sums + r * t.stride + c * kLanes, sums[r][c]);
  }
}

template <bool Transposed>
void pair_tile_of(const PairTile& t, int64_t rows) {
  switch (rows) {
#define QKV_ROWS(n) \
  case n:           \
    return pair_tile<n, Transposed>(t)
    QKV_ROWS(1);
    QKV_ROWS(2);
    QKV_ROWS(3);
    QKV_ROWS(4);
    QKV_ROWS(5);
    QKV_ROWS(6);
    QKV_ROWS(7);
    QKV_ROWS(8);
    QKV_ROWS(9);
    QKV_ROWS(10);
    QKV_ROWS(11);
    QKV_ROWS(12);
#undef QKV_ROWS
  }
}

class PairProduct {
 public:
  explicit PairProduct(const TileCall& call)
      : call_(call),
        parts_(call.inner > kPairStretch ? (call.inner + kPairStretch - 1) / kPairStretch : 1),
        panels_(steps_of(call.cols)),
        transposed_(call.a.layout == TileSide::Layout::k_strided),
        strip_(static_cast<uint32_t*>(call.scratch)),
        partial_(reinterpret_cast<float*>(strip_ + kStripWords)),
        packed_(reinterpret_cast<uint16_t*>(partial_ + kPartRows * kPartColumns)) {}

  void run() {
    const int64_t most_rows = parts_ > 1 ? kPartRows : call_.rows, most_panels = panels_at_once();
    for (int64_t row = 0; row < call_.rows; row += most_rows) {
      for (int64_t panel = 0; panel < panels_; panel += most_panels) {
        for (part_ = 0; part_ < parts_; ++part_) {
          block(row, smaller(most_rows, call_.rows - row), panel, smaller(most_panels, panels_ - panel));
        }
      }
    }
  }

 private:
  static constexpr int64_t kStripWords = kPairStretch / 2 * kLanes;  // 64 KiB, transposed or not
  static constexpr int64_t kPartRows = 240, kPartPanels = 4, kPartColumns = 32 * kPartPanels;
  static constexpr int64_t kPackedNumbers = kPartPanels * kPanelColumns * kPairStretch;  // 512 KiB
  static_assert(kStripRows * kStripStride <= kStripWords);
  static_assert(kTileScratch >= kStripWords * 4 + kPartRows * kPartColumns * 4 + kPackedNumbers * 2);

  int64_t panels_at_once() const {
    return parts_ > 1 ? kPartPanels : kPackedNumbers / (kBlockNumbers * (steps_of(call_.inner) + 1));
  }
  int64_t first() const { return part_ * kPairStretch; }
  int64_t inner() const { return smaller(kPairStretch, call_.inner - first()); }

  void block(int64_t row, int64_t rows, int64_t panel, int64_t panels) {
    const int64_t steps = steps_of(inner());
    const bool parked = parts_ > 1;
    pack_panels(packed_, call_, {panel, panels, first(), inner()});
    alignas(64) float whole[kStripRows * kPanelColumns];
    for (int64_t r = 0; r < rows; r += kStripRows) {
      const int64_t some = smaller(kStripRows, rows - r);
      pack_strip(row + r, some);
      for (int64_t j = 0; j < panels; ++j) {
        const PairTile tile{.a = strip_,
                            .b = packed_ + j * steps * kBlockNumbers,
                            .steps = steps,
                            .sums = parked ? partial_ + r * kPartColumns + j * kPanelColumns : whole,
                            .stride = parked ? kPartColumns : kPanelColumns,
                            .add = part_ > 0};
        transposed_ ? pair_tile_of<true>(tile, some) : pair_tile_of<false>(tile, some);
        if (part_ + 1 == parts_) put(tile, row + r, some, (panel + j) * kPanelColumns);
      }
    }
  }

  void put(const PairTile& tile, int64_t row, int64_t rows, int64_t column) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t half = 0; half < kPanelColumns; half += kLanes) {
        const int64_t count = smaller(call_.cols - column - half, kLanes);
        if (count > 0) store_sums(call_, row + r, column + half, load(tile.sums + r * tile.stride + half), count);
      }
    }
  }

  void pack_strip(int64_t row, int64_t rows) const {
    const TileSide& a = call_.a;
    for (int64_t k = 0; k < inner(); k += kBlockSide) {
      const int64_t left = inner() - k;
      if (transposed_) {
        const BlockFrom from{a.data + (first() + k) * a.stride + row, a.stride, left, rows};
        for (int64_t p = 0; p < kLanes; ++p) {
          const PairedRows pairs = paired(load_row(from, 2 * p), load_row(from, 2 * p + 1));
          _mm512_store_si512(strip_ + (k / 2 + p) * kLanes, pairs.low);
        }
        continue;
      }
      const BlockFrom from{a.data + row * a.stride + first() + k, a.stride, rows, left};
      for (int64_t r = 0; r < rows; ++r) _mm512_store_si512(strip_ + r * kStripStride + k / 2, load_row(from, r));
    }
  }

  const TileCall& call_;
  int64_t parts_, panels_, part_ = 0;
  bool transposed_;
  uint32_t* strip_;
  float* partial_;
  uint16_t* packed_;
};

void pair_product(const TileCall& call) noexcept {
  PairProduct(call).run();
}

}  // namespace
}  // namespace qkv::kernels::cpu
