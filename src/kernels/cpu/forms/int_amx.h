// Many rows of activations against panels of weights by products of tiles: the sums of int_forms.h, so the same bits.
//
//   right   512 columns of two panels at a time are laid as tiles of signed bytes u - offset and serve all rows. With
//           subscales a byte holds -sub (u - offset), so that a block of 256 is one sum; where that needs two bytes,
//           low and high ones of a single panel take the place of two panels. A scale's sign makes up for the minus,
//           which is there because 4 . 32 (Q3_K) is no signed byte.
//   left    rows of q where they lie; rows that do not lie evenly, and the last ones, are copied
//   sums    2 x 2 tiles, 32 rows and 32 outputs; a block's integers go through 4 KiB of memory and become floats while
//           the products of the next block run. Blocks longer than 512 columns leave their integers in y meanwhile.
#pragma once

#include "kernels/cpu/forms/int_tile.h"

#if defined(__AMX_INT8__)

#include "kernels/cpu/forms/tiles.h"

namespace qkv::kernels::cpu {
namespace {

// For 512 columns of two panels VNNI takes 128 cycles a row; laying tiles and multiplying up to sixteen rows about 850.
constexpr int64_t kRowsForTiles = 8;
constexpr int64_t kChunk = 512;  // columns; 16 KiB of tiles stay in the first-level cache

template <Layout L, bool Minima = false, bool Subscales = false, bool Wide = false>
class IntTileProducts {
 public:
  static void run(const IntCall& c) noexcept {
    IntTileProducts products(c);
    const UseTiles use(products.step_);
    for (int64_t panel = 0; panel < c.panels; panel += kPanels) {
      for (int64_t k = 0; k < c.shape.inner; k += kChunk) {
        products.lay(panel, k);
        for (int64_t row = 0; row < c.rows; row += 2 * kTileRows) {
          c.rows - row > kTileRows ? products.multiply<2>(row) : products.multiply<1>(row);
        }
        products.convert(2 * kTileRows);
      }
    }
  }

 private:
  static constexpr int kPanels = Wide ? 1 : 2;
  static constexpr int64_t kWidth = 2 * kPanel, kLine = 64;
  static constexpr int64_t kColumnBytes = L == Layout::q4 ? 8 : 16;  // of a column of a panel

  explicit IntTileProducts(const IntCall& c) : c_(c), shape_(c.shape) {
    step_ = shape_.block == 32 ? 32 : kTileRowBytes;
  }

  const char* panel(int64_t p) const {  // one past the last reads the last once more
    return static_cast<const char*>(c_.w) + (p < c_.panels ? p : c_.panels - 1) * c_.panel_bytes;
  }
  // Bytes from a panel's start to a column.
  int64_t column_at(int64_t k) const {
    if constexpr (L == Layout::unpacked) return k * kColumnBytes;
    return k * kColumnBytes + (k / shape_.block / 2 + 1) * kLine;
  }
  static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  // --- the right side

  void lay(int64_t first_panel, int64_t k) {
    first_ = k;
    first_panel_ = first_panel;
    columns_ = smaller(kChunk, shape_.inner - k);
    block_columns_ = smaller(shape_.block, columns_);
    steps_ = (block_columns_ + step_ - 1) / step_;
    first_block_ = k / shape_.block;
    convert_each_ = (2 * kTileRows + steps_ - 1) / steps_;
    for (int p = 0; p < kPanels; ++p) {
      const char* w = panel(first_panel + p);
      int8_t* to = tiles_ + p * kPanel * step_;
      for (int64_t i = 0; i < columns_; i += step_, to += kWidth * step_) lay_step(w, k + i, to);
      for (int64_t b = 0; b < columns_ / block_columns_; ++b) lay_scales(w, first_block_ + b, scales_[b][p]);
    }
    written_before_tiles();
    aim_at_next();
  }

  void lay_step(const char* w, int64_t k, int8_t* to) {
    const int64_t columns = smaller(step_, shape_.inner - k);
    const char* from = w + column_at(k);
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(shape_.offset));
    const auto put = [&to](__m512i bytes) __attribute__((always_inline)) {
      _mm512_store_si512(to, bytes);
      to += kLine;
    };
    for (int64_t i = 0; i < columns; i += 64 / kColumnBytes, from += kLine) {
      const __m512i line = _mm512_loadu_si512(from);
      if constexpr (Subscales) {
        const Two two = times_subscale(line, w, (k + i) / shape_.part);
        put(two.low);
        if constexpr (Wide) _mm512_store_si512(to - kLine + kPanel * step_, two.high);
      } else if constexpr (L == Layout::q4) {
        const Ints both{{(IntRegister)line}};
        put(_mm512_sub_epi8((__m512i)masked(both, 0x0f0f0f0fU).part[0], offset));
        put(_mm512_sub_epi8((__m512i)masked(shifted_down<4>(both), 0x0f0f0f0fU).part[0], offset));
      } else {
        put(_mm512_sub_epi8(line, offset));
      }
    }
    for (int64_t i = columns; i < step_; i += 4) put(_mm512_setzero_si512());
  }

  // -sub (u - offset) = low + 256 high, both signed.
  struct Two {
    __m512i low, high;
  };
  Two times_subscale(__m512i line, const char* w, int64_t part) const {
    const char* lows = w + kPanel * (shape_.inner + 4 * shape_.blocks() * (Minima ? 2 : 1));
    const Ints sub = load_signed_bytes(reinterpret_cast<const int8_t*>(lows + kPanel * (2 * shape_.parts() + part)));
    const Ints twice = masked(sub, 0xffffU) + shifted_up<16>(sub);  // for both 16-bit halves of a lane
    const __m512i offset = _mm512_set1_epi16(static_cast<int16_t>(shape_.offset));
    const auto product = [&](__m512i bytes) __attribute__((always_inline)) {
      return _mm512_mullo_epi16(_mm512_sub_epi16(offset, bytes), (__m512i)twice.part[0]);
    };
    const __m512i even = product(_mm512_and_si512(line, _mm512_set1_epi16(255)));
    const __m512i odd = product(_mm512_srli_epi16(line, 8));
    const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaaULL;
    const __m512i half = _mm512_set1_epi16(128);
    return {_mm512_mask_mov_epi8(even, odd_bytes, _mm512_slli_epi16(odd, 8)),
            _mm512_mask_mov_epi8(_mm512_srli_epi16(_mm512_add_epi16(even, half), 8), odd_bytes,
                                 _mm512_add_epi16(odd, half))};
  }

  void lay_scales(const char* w, int64_t block, float* to) const {
    if constexpr (L == Layout::unpacked) {
      const Lanes scale = load(reinterpret_cast<const float*>(w + kPanel * (shape_.inner + 4 * block)));
      store(to, Subscales ? -scale : scale);
    } else {
      const Ints both = load_words(w + column_at(block / 2 * 2 * shape_.block) - kLine);
      store(to, as_floats(block % 2 == 0 ? shifted_up<16>(both) : masked(both, 0xffff0000U)));
    }
  }

  // The columns that come next are called near, some at every step.
  void aim_at_next() {
    if constexpr (L == Layout::unpacked) return;  // was just written
    const int64_t end = first_ + columns_;
    const int64_t next = end < shape_.inner ? end : 0, panels_on = end < shape_.inner ? 0 : kPanels;
    fetch_ = static_cast<const char*>(c_.w) + (first_panel_ + panels_on) * c_.panel_bytes + column_at(next) - kLine;
    fetch_end_ = fetch_ + smaller(kChunk, shape_.inner - next) * kColumnBytes + 2 * kLine;
    const int64_t steps = (c_.rows + 2 * kTileRows - 1) / (2 * kTileRows) * ((columns_ + step_ - 1) / step_);
    fetch_each_ = ((fetch_end_ - fetch_) / kLine + steps - 1) / steps;
  }
  void fetch_some() {
    if constexpr (L == Layout::unpacked) return;
    for (int64_t i = 0; i < fetch_each_ && fetch_ < fetch_end_; ++i, fetch_ += kLine) {
      for (int p = 0; p < kPanels; ++p) __builtin_prefetch(fetch_ + p * c_.panel_bytes, 0, 2);
    }
  }

  // --- the left side and the products

  struct Left {
    const int8_t* q = nullptr;
    int64_t stride = 0;
  };
  Left left(int64_t row, int64_t tile) {
    const IntRow* x = c_.x + row;
    const int64_t rows = smaller(kTileRows, c_.rows - row), stride = rows > 1 ? x[1].q - x[0].q : 0;
    bool even = rows == kTileRows;
    for (int64_t r = 2; r < rows; ++r) even = even && x[r].q - x[r - 1].q == stride;
    if (even) return {x->q + first_, stride};
    for (int64_t r = 0; r < rows; ++r) {
      __builtin_memcpy(copies_[tile][r], x[r].q + first_, static_cast<size_t>(columns_));
    }
    written_before_tiles();
    return {copies_[tile][0], kChunk};
  }

  template <int Tiles>
  void multiply(int64_t row) {
    Left a = left(row, 0), b;
    if constexpr (Tiles == 2) b = left(row + kTileRows, 1);
    const int8_t* right = tiles_;
    const int64_t blocks = columns_ / block_columns_;
    for (int64_t block = 0; block < blocks; ++block) {
      _tile_zero(0);
      _tile_zero(1);
      if constexpr (Tiles == 2) {
        _tile_zero(2);
        _tile_zero(3);
      }
      for (int64_t s = 0; s < steps_; ++s, right += kWidth * step_, a.q += step_) {
        _tile_stream_loadd(4, a.q, a.stride);
        if constexpr (Tiles == 2) _tile_stream_loadd(5, b.q, b.stride);
        _tile_loadd(6, right, kLine);
        _tile_loadd(7, right + kPanel * step_, kLine);
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        if constexpr (Tiles == 2) {
          _tile_dpbssd(2, 5, 6);
          _tile_dpbssd(3, 5, 7);
          b.q += step_;
        }
        convert(convert_each_);
        fetch_some();
      }
      constexpr int64_t kStride = kWidth * 4;
      _tile_stored(0, integers_, kStride);
      _tile_stored(1, integers_ + kPanel, kStride);
      if constexpr (Tiles == 2) {
        _tile_stored(2, integers_ + kTileRows * kWidth, kStride);
        _tile_stored(3, integers_ + kTileRows * kWidth + kPanel, kStride);
      }
      hand_over(row, block, block + 1 == blocks);
    }
  }

  // --- integers to floats

  // The sums of a block on their way from memory to y, or between blocks to where they wait.
  struct Pending {
    const IntRow* x = nullptr;
    int64_t rows = 0, done = 0, block = 0, slot = 0;
    const float* from = nullptr;
    float* to = nullptr;
    int64_t from_stride = 0, to_stride = 0;
    int64_t from_count[2] = {}, to_count[2] = {};  // of sixteen
  };
  void hand_over(int64_t row, int64_t slot, bool last) {
    float* y = c_.y + row * c_.y_stride + first_panel_ * kPanel;
    pending_ = {.x = c_.x + row,
                .rows = smaller(2 * kTileRows, c_.rows - row),
                .block = first_block_ + slot,
                .slot = slot,
                .from = slot == 0 ? y : waiting_,
                .to = last ? y : waiting_,
                .from_stride = slot == 0 ? c_.y_stride : kWidth,
                .to_stride = last ? c_.y_stride : kWidth};
    for (int p = 0; p < kPanels; ++p) {
      const int64_t left = c_.outputs - (first_panel_ + p) * kPanel, there = left < 0 ? 0 : smaller(left, kPanel);
      pending_.from_count[p] = slot > 0 ? kPanel : first_ == 0 ? 0 : there;  // a row's first block starts from zeros
      pending_.to_count[p] = last ? there : kPanel;
    }
  }

  // Some rows more of what is pending.
  void convert(int64_t rows) {
    const Pending job = pending_;
    const bool part = L != Layout::unpacked && shape_.block > kChunk, last = first_ + columns_ == shape_.inner;
    Lanes scales[unsigned{kPanels}];
    for (int p = 0; p < kPanels; ++p) scales[p] = load(scales_[job.slot][p]);
    int64_t r = job.done;
    for (const int64_t end = smaller(r + rows, job.rows); r < end; ++r) {
      const IntRow& x = job.x[r];
      const Lanes scale = splat(x.scales[job.block]);
      for (int p = 0; p < kPanels; ++p) {
        const int32_t* at = integers_ + r * kWidth + p * kPanel;
        Ints sum = load_words(at);
        if constexpr (Wide) sum = sum + shifted_up<8>(load_words(at + kPanel));
        Lanes y = load_some(job.from + r * job.from_stride + p * kPanel, job.from_count[p]);
        if (part) {
          sum = sum + as_ints(y);
          y = splat(0);
        }
        y = part && !last ? as_floats(sum) : y + to_floats(sum) * (scales[p] * scale);
        if constexpr (Minima) {
          const char* w = panel(first_panel_ + p) + kPanel * (shape_.inner + 4 * shape_.blocks());
          const Lanes low = load(reinterpret_cast<const float*>(w + kPanel * 4 * job.block));
          y = y + to_floats(minima(x, job.block, w)) * (low * scale);
        }
        store_some(job.to + r * job.to_stride + p * kPanel, y, job.to_count[p]);
      }
    }
    pending_.done = r;
  }
  // A block's sum of what its minimum is taken times.
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
  int64_t step_ = 0;                                   // columns of a tile
  int64_t first_ = 0, columns_ = 0, first_block_ = 0;  // of the chunk
  int64_t first_panel_ = 0;                            // of the two
  int64_t block_columns_ = 0, steps_ = 0;              // of a block, or its part in the chunk
  int64_t convert_each_ = 0;                           // rows at a step
  const char *fetch_ = nullptr, *fetch_end_ = nullptr;
  int64_t fetch_each_ = 0;  // lines at a step
  Pending pending_;
  alignas(64) int8_t tiles_[kWidth * kChunk];  // [step][2][columns / 4][16][4]
  alignas(64) int8_t copies_[2][kTileRows][kChunk] = {};
  alignas(64) int32_t integers_[2 * kTileRows * kWidth];
  alignas(64) float waiting_[2 * kTileRows * kWidth];
  alignas(64) float scales_[kChunk / 32][2][kPanel];
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
