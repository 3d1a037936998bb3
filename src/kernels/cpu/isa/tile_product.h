// y[m][n] = sum_k a[m][k] b[n][k], bf16, on tiles (tiles.h). One order of additions for any number of rows:
//
//   k is split into ranges: a single one up to kWholeInner, else ranges of kRange. In a range the products of 32 k at a
//   time are added to a sum that starts at zero: first to last in even panels of 32 columns, last to first in odd ones.
//   Ranges are added in order.
//
//   a strip of 32 rows of a     [k / 32] left blocks    L1 cache, read forwards and backwards in turn: the blocks read
//                                                       last are still cached
//   panels of 32 columns of b   [k / 32] right blocks   L2 cache, streamed
//
// A step of four products keeps the matrix unit busy for 64 cycles. Meanwhile the vector units pack the next strip and
// store the previous sums: both are split into small pieces, some for every step.
#pragma once

#include "kernels/cpu/isa/tile_pack.h"
#include "kernels/cpu/isa/tiles.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kWholeInner = 1024, kRange = 512;

constexpr int64_t range_of(int64_t inner) {
  return inner <= kWholeInner ? inner : kRange;
}

// Rows [row, row + rows) of a, one range of k.
struct Strip {
  int64_t row = 0, rows = 0, first = 0, inner = 0;
};

// Packs the next strip of a, piece by piece: rows, or whole blocks if k is strided.
class NextStrip {
 public:
  void begin(const TileSide& a, const Strip& strip, uint16_t* to) {
    a_ = a;
    strip_ = strip;
    to_ = to;
    piece_ = 0;
    pieces_ = steps_of(strip.inner) * (a.layout == TileSide::Layout::k_contiguous ? kBlockSide : 1);
  }
  void none() { piece_ = pieces_ = 0; }
  int64_t pieces() const { return pieces_; }
  void some(int64_t count) {
    for (; count > 0 && piece_ < pieces_; --count, ++piece_) pack(piece_);
  }
  void rest() { some(pieces_ - piece_); }

 private:
  void pack(int64_t piece) const {
    if (a_.layout == TileSide::Layout::k_contiguous) {
      const int64_t step = piece / kBlockSide, k = step * kBlockSide;
      pack_left_row(to_ + step * kBlockNumbers,
                    {a_.data + strip_.row * a_.stride + strip_.first + k, a_.stride, strip_.rows, strip_.inner - k},
                    piece % kBlockSide);
    } else {
      const int64_t k = piece * kBlockSide;
      pack_left_transposed(to_ + piece * kBlockNumbers, {a_.data + (strip_.first + k) * a_.stride + strip_.row,
                                                         a_.stride, strip_.inner - k, strip_.rows});
    }
  }

  TileSide a_;
  Strip strip_;
  int64_t piece_ = 0, pieces_ = 0;
  uint16_t* to_ = nullptr;
};

// Where 32 x 32 sums belong; between ranges of k the partial sums are kept in `partial`.
struct SumsAt {
  int64_t row = 0, rows = 0, column = 0;
  float* partial = nullptr;        // null: there is one range
  int64_t stride = 0;              // of partial
  bool first = true, last = true;  // of the ranges
};

// Stores the previous tile's sums, piece by piece.
class PendingSums {
 public:
  explicit PendingSums(const TileCall& call) : call_(call) {}

  float* buffer() { return sums_; }
  void take(const SumsAt& at) {
    at_ = at;
    vector_ = 0;
    vectors_ = 2 * at.rows;
  }
  void some(int64_t count) {
    for (; count > 0 && vector_ < vectors_; --count, ++vector_) put(vector_);
  }
  void rest() { some(vectors_ - vector_); }

 private:
  void put(int64_t vector) {
    const int64_t row = vector / 2, half = vector % 2 * kLanes, column = at_.column + half;
    const int64_t count = smaller(call_.cols - column, kLanes);
    if (count <= 0) return;
    Lanes sum = load(sums_ + vector * kLanes);
    if (at_.partial != nullptr) {
      float* partial = at_.partial + row * at_.stride + half;
      if (!at_.first) sum = load(partial) + sum;
      if (!at_.last) return store(partial, sum);
    }
    store_sums(call_, at_.row + row, column, sum, count);
  }

  const TileCall& call_;
  alignas(64) float sums_[kBlockNumbers];
  SumsAt at_;
  int64_t vector_ = 0, vectors_ = 0;
};

class TileProduct {
 public:
  explicit TileProduct(const TileCall& call)
      : call_(call),
        range_(range_of(call.inner)),
        parts_(call.inner <= range_ ? 1 : (call.inner + range_ - 1) / range_),
        panels_(steps_of(call.cols)),
        strips_{static_cast<uint16_t*>(call.scratch), static_cast<uint16_t*>(call.scratch) + kStripNumbers},
        packed_(strips_[1] + kStripNumbers),
        partial_(reinterpret_cast<float*>(packed_ + kPackedNumbers)),
        pending_(call) {}

  void run() {
    const UseTiles use;
    const int64_t most_rows = parts_ > 1 ? kPartRows : call_.rows, most_panels = panels_at_once();
    for (int64_t row = 0; row < call_.rows; row += most_rows) {
      for (int64_t panel = 0; panel < panels_; panel += most_panels) {
        for (part_ = 0; part_ < parts_; ++part_) {
          block(row, smaller(most_rows, call_.rows - row), panel, smaller(most_panels, panels_ - panel));
        }
      }
    }
    pending_.rest();
  }

 private:
  static constexpr int64_t kStripNumbers = kBlockSide * kWholeInner;
  static constexpr int64_t kPackedNumbers = 384 << 10;        // 768 KiB of right blocks
  static constexpr int64_t kPartRows = 512, kPartPanels = 8;  // whose partial sums are kept
  static constexpr int64_t kMostPanels = 32;
  static_assert(kTileScratch == (2 * kStripNumbers + kPackedNumbers) * 2 + kPartRows * kPartPanels * kPanelColumns * 4);

  int64_t panels_at_once() const {  // even: a panel's order of additions depends on its parity
    if (parts_ > 1) return kPartPanels;
    const int64_t fit = kPackedNumbers / (kBlockNumbers * (steps_of(range_) + 1));
    return smaller(fit, kMostPanels) / 2 * 2;
  }
  int64_t first() const { return part_ * range_; }
  int64_t inner() const { return smaller(range_, call_.inner - first()); }

  // All strips of some rows times some panels, one range of k.
  void block(int64_t row, int64_t rows, int64_t panel, int64_t panels) {
    const int64_t steps = steps_of(inner());
    if (call_.b.layout != TileSide::Layout::packed) pack_panels(packed_, call_, {panel, panels, first(), inner()});
    constexpr int64_t kPartialStride = kPartPanels * kPanelColumns;
    SumsAt sums{.stride = kPartialStride, .first = part_ == 0, .last = part_ + 1 == parts_};
    begin_strip(row, rows, 0);
    next_.rest();
    for (int64_t from = 0; from < rows; from += kBlockSide) {
      next_.none();
      if (from + kBlockSide < rows) begin_strip(row, rows, from + kBlockSide);
      pieces_each_step_ = steps > 0 ? (next_.pieces() + panels * steps - 1) / (panels * steps) : 0;
      sums.row = row + from;
      sums.rows = smaller(kBlockSide, rows - from);
      for (int64_t j = 0; j < panels; ++j) {
        multiply(strip_at(from), right(panel, panel + j), steps, (panel + j) % 2 != 0, sums.rows);
        sums.column = (panel + j) * kPanelColumns;
        if (parts_ > 1) sums.partial = partial_ + from * kPartialStride + j * kPanelColumns;
        pending_.take(sums);
      }
      next_.rest();
    }
  }
  uint16_t* strip_at(int64_t from) const { return strips_[from / kBlockSide % 2]; }
  void begin_strip(int64_t row, int64_t rows, int64_t from) {
    next_.begin(call_.a, {row + from, smaller(kBlockSide, rows - from), first(), inner()}, strip_at(from));
  }

  const uint16_t* right(int64_t first_panel, int64_t panel) const {
    if (call_.b.layout == TileSide::Layout::packed) {
      return call_.b.data + (panel * steps_of(call_.inner) + first() / kBlockSide) * kBlockNumbers;
    }
    return packed_ + (panel - first_panel) * steps_of(inner()) * kBlockNumbers;
  }

  // One strip times one panel. All loads of a step come before its products, so they do not wait for them. Few rows are
  // bound by memory: then the next panel is prefetched.
  void multiply(const uint16_t* left, const uint16_t* right, int64_t steps, bool backwards, int64_t rows) {
    const int64_t vectors = steps > 0 ? (2 * kBlockSide + steps - 1) / steps : 0;
    const bool two = rows > kTileRows;
    const bool prefetches = call_.rows <= kBlockSide && call_.b.layout == TileSide::Layout::packed;
    const uint16_t* next_right = right + steps_of(call_.inner) * kBlockNumbers;
    zero_tile<0>();
    zero_tile<1>();
    zero_tile<2>();
    zero_tile<3>();
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t at = backwards ? steps - 1 - s : s;
      const uint16_t *l = left + at * kBlockNumbers, *r = right + at * kBlockNumbers;
      stream_tile<6>(r, kTileRowBytes);
      stream_tile<7>(r + kBlockNumbers / 2, kTileRowBytes);
      load_tile<4>(l, kTileRowBytes);
      if (two) load_tile<5>(l + kBlockNumbers / 2, kTileRowBytes);
      multiply_tiles<0, 4, 6>();
      multiply_tiles<1, 4, 7>();
      if (two) {
        multiply_tiles<2, 5, 6>();
        multiply_tiles<3, 5, 7>();
      }
      if (prefetches) {
        const auto* near = reinterpret_cast<const char*>(next_right + (steps - 1 - at) * kBlockNumbers);
        for (int64_t line = 0; line < 2 * kTileBytes; line += 64) __builtin_prefetch(near + line, 0, 2);
      }
      pending_.some(vectors);
      next_.some(pieces_each_step_);
    }
    pending_.rest();
    float* sums = pending_.buffer();
    constexpr int64_t kRowBytes = kPanelColumns * 4;
    store_tile<0>(sums, kRowBytes);
    store_tile<1>(sums + kTileRows, kRowBytes);
    store_tile<2>(sums + kTileRows * kPanelColumns, kRowBytes);
    store_tile<3>(sums + kTileRows * kPanelColumns + kTileRows, kRowBytes);
  }

  const TileCall& call_;
  int64_t range_, parts_, panels_, part_ = 0, pieces_each_step_ = 0;
  uint16_t* strips_[2];
  uint16_t* packed_;
  float* partial_;
  NextStrip next_;
  PendingSums pending_;
};

void tile_product(const TileCall& call) noexcept {
  TileProduct(call).run();
}

}  // namespace
}  // namespace qkv::kernels::cpu
