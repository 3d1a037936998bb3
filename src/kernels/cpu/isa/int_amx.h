// Many rows of activations times panels of weights by products of tiles: the sums of int_isa_kernels.h, so the same
// bits.
//
//   right   512 columns of two panels at a time are packed as tiles of signed bytes and serve all rows (int_right.h)
//   left    rows of q in place; rows that are not evenly spaced, and the last ones, are copied
//   sums    2 x 2 tiles, 32 rows and 32 outputs; a block's integers go through 4 KiB of memory and are converted to
//           floats during the products of the next block. Blocks longer than 512 columns keep their integers in y.
#pragma once

#include "kernels/cpu/isa/int_tile.h"

#if defined(__AMX_INT8__)

#include "kernels/cpu/isa/int_right.h"

namespace qkv::kernels::cpu {
namespace {

// For 512 columns of two panels VNNI takes 128 cycles per row; packing tiles and multiplying up to 16 rows about 850.
constexpr int64_t kRowsForTiles = 8;

template <Layout L, bool Minima = false, bool Subscales = false, bool Wide = false>
class IntTileProducts {
 public:
  static void run(const IntCall& c) noexcept {
    IntTileProducts products(c);
    const UseTiles use(products.right_.step);
    for (int64_t panel = 0; panel < c.panels; panel += kPanels) {
      for (int64_t k = 0; k < c.shape.inner; k += kChunk) {
        products.right_.pack(panel, k);
        for (int64_t row = 0; row < c.rows; row += 2 * kTileRows) {
          c.rows - row > kTileRows ? products.multiply<2>(row) : products.multiply<1>(row);
        }
        products.convert(2 * kTileRows);
      }
    }
  }

 private:
  using Right = RightTiles<L, Minima, Subscales, Wide>;
  static constexpr int kPanels = Right::kPanels;

  explicit IntTileProducts(const IntCall& c) : c_(c), shape_(c.shape), right_(c) {}

  struct Left {
    const int8_t* q = nullptr;
    int64_t stride = 0;
  };
  Left left(int64_t row, int64_t tile) {
    const IntRow* x = c_.x + row;
    const int64_t rows = smaller(kTileRows, c_.rows - row), stride = rows > 1 ? x[1].q - x[0].q : 0;
    bool even = rows == kTileRows;
    for (int64_t r = 2; r < rows; ++r) even = even && x[r].q - x[r - 1].q == stride;
    if (even) return {x->q + right_.first, stride};
    for (int64_t r = 0; r < rows; ++r) {
      __builtin_memcpy(copies_[tile][r], x[r].q + right_.first, static_cast<size_t>(right_.columns));
    }
    return {copies_[tile][0], kChunk};
  }

  template <int Tiles>
  void multiply(int64_t row) {
    Left a = left(row, 0), b;
    if constexpr (Tiles == 2) b = left(row + kTileRows, 1);
    const int8_t* right = right_.bytes;
    const int64_t step = right_.step, steps = right_.steps, blocks = right_.blocks;
    const int64_t rows_each = (2 * kTileRows + steps - 1) / steps;  // converted per step
    for (int64_t block = 0; block < blocks; ++block) {
      zero_tile<0>();
      zero_tile<1>();
      if constexpr (Tiles == 2) {
        zero_tile<2>();
        zero_tile<3>();
      }
      for (int64_t s = 0; s < steps; ++s, right += kTwoPanels * step, a.q += step) {
        stream_tile<4>(a.q, a.stride);
        if constexpr (Tiles == 2) stream_tile<5>(b.q, b.stride);
        load_tile<6>(right, kTileRowBytes);
        load_tile<7>(right + kPanel * step, kTileRowBytes);
        multiply_byte_tiles<0, 4, 6>();
        multiply_byte_tiles<1, 4, 7>();
        if constexpr (Tiles == 2) {
          multiply_byte_tiles<2, 5, 6>();
          multiply_byte_tiles<3, 5, 7>();
          b.q += step;
        }
        convert(rows_each);
        right_.prefetch_some();
      }
      constexpr int64_t kStride = kTwoPanels * 4;
      store_tile<0>(integers_, kStride);
      store_tile<1>(integers_ + kPanel, kStride);
      if constexpr (Tiles == 2) {
        store_tile<2>(integers_ + kTileRows * kTwoPanels, kStride);
        store_tile<3>(integers_ + kTileRows * kTwoPanels + kPanel, kStride);
      }
      hand_over(row, block, block + 1 == blocks);
    }
  }

  // Integers to floats.

  // Sums of a block that are still to be converted: into y, or between blocks into waiting_.
  struct Pending {
    const IntRow* x = nullptr;
    int64_t rows = 0, done = 0, block = 0, slot = 0;
    const float* from = nullptr;
    float* to = nullptr;
    int64_t from_stride = 0, to_stride = 0;
    int64_t from_count[2] = {}, to_count[2] = {};  // of sixteen
  };
  void hand_over(int64_t row, int64_t slot, bool last) {
    float* y = c_.y + row * c_.y_stride + right_.panel * kPanel;
    pending_ = {.x = c_.x + row,
                .rows = smaller(2 * kTileRows, c_.rows - row),
                .block = right_.first_block + slot,
                .slot = slot,
                .from = slot == 0 ? y : waiting_,
                .to = last ? y : waiting_,
                .from_stride = slot == 0 ? c_.y_stride : kTwoPanels,
                .to_stride = last ? c_.y_stride : kTwoPanels};
    for (int p = 0; p < kPanels; ++p) {
      const int64_t left = c_.outputs - (right_.panel + p) * kPanel, there = left < 0 ? 0 : smaller(left, kPanel);
      pending_.from_count[p] = slot > 0            ? kPanel
                               : right_.first == 0 ? 0
                                                   : there;  // the first block of a row starts from zero
      pending_.to_count[p] = last ? there : kPanel;
    }
  }

  // Converts some more of the pending rows.
  void convert(int64_t rows) {
    const Pending job = pending_;
    const bool part = L != Layout::unpacked && shape_.block > kChunk, last = right_.ends_row();
    Lanes scales[unsigned{kPanels}];
    for (int p = 0; p < kPanels; ++p) scales[p] = load(right_.scales[job.slot][p]);
    int64_t r = job.done;
    for (const int64_t end = smaller(r + rows, job.rows); r < end; ++r) {
      const IntRow& x = job.x[r];
      const Lanes scale = splat(x.scales[job.block]);
      for (int p = 0; p < kPanels; ++p) {
        const int32_t* at = integers_ + r * kTwoPanels + p * kPanel;
        Ints sum = load_words(at);
        if constexpr (Wide) sum = sum + shifted_up<8>(load_words(at + kPanel));
        Lanes y = load_some(job.from + r * job.from_stride + p * kPanel, job.from_count[p]);
        if (part) {
          sum = sum + as_ints(y);
          y = splat(0);
        }
        y = part && !last ? as_floats(sum) : y + to_floats(sum) * (scales[p] * scale);
        if constexpr (Minima) {
          const char* w = right_.panel_at(p) + kPanel * (shape_.inner + 4 * shape_.blocks());
          const Lanes low = load(reinterpret_cast<const float*>(w + kPanel * 4 * job.block));
          y = y + to_floats(minima(x, job.block, w)) * (low * scale);
        }
        store_some(job.to + r * job.to_stride + p * kPanel, y, job.to_count[p]);
      }
    }
    pending_.done = r;
  }
  // M of int_isa_kernels.h for one block.
  Ints minima(const IntRow& x, int64_t block, const char* after_scales) const {
    if constexpr (!Subscales) return splat_int(x.sums[block]);
    const char* lows = after_scales + kPanel * 4 * shape_.blocks();
    const int64_t parts = shape_.block / shape_.part;
    Ints sum = splat_int(0);
    for (int64_t two = block * parts; two < (block + 1) * parts; two += 2) {
      sum = dot2(sum, load_words(lows + 2 * kPanel * two), splat_two(x.part_sums + two));
    }
    return sum;
  }

  const IntCall& c_;
  const IntShape shape_;
  Right right_;
  Pending pending_;
  alignas(64) int8_t copies_[2][kTileRows][kChunk] = {};
  alignas(64) int32_t integers_[2 * kTileRows * kTwoPanels];
  alignas(64) float waiting_[2 * kTileRows * kTwoPanels];
};

// Few rows by VNNI, more by tiles.
template <Layout L>
void panels_by_rows(const IntCall& c) noexcept {
  c.rows > kRowsForTiles ? IntTileProducts<L>::run(c) : IntTiles<L>::run(c);
}

void unpacked_by_rows(const IntCall& c) noexcept {
  constexpr Layout kBytes = Layout::unpacked;
  if (c.rows <= kRowsForTiles) return unpacked_products(c);
  const IntShape& shape = c.shape;
  if (!shape.subscales) return shape.minima ? IntTileProducts<kBytes, true>::run(c) : IntTileProducts<kBytes>::run(c);
  if (shape.minima) {
    return shape.wide ? IntTileProducts<kBytes, true, true, true>::run(c) : IntTileProducts<kBytes, true, true>::run(c);
  }
  return shape.wide ? IntTileProducts<kBytes, false, true, true>::run(c) : IntTileProducts<kBytes, false, true>::run(c);
}

}  // namespace
}  // namespace qkv::kernels::cpu

#endif
