// Columns of panels packed as the right operand of tile products (int_amx.h), as signed bytes:
//   u - offset
//   -sub (u - offset)   with subscales, so that a block of 256 is one sum. If that needs two bytes, the low and high
//                       bytes of one panel take the place of two panels. It is negated because 4 * 32 (Q3_K) does not
//                       fit a signed byte; the scale is negated too.
#pragma once

#include "kernels/cpu/isa/int_tile.h"
#include "kernels/cpu/isa/tiles.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kChunk = 512;             // columns; 16 KiB of tiles stay in the L1 cache
constexpr int64_t kTwoPanels = 2 * kPanel;  // outputs of a pair of tiles

QKV_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

template <Layout L, bool Minima, bool Subscales, bool Wide>
struct RightTiles {
  static constexpr int kPanels = Wide ? 1 : 2;
  static constexpr int64_t kLine = 64;

  const IntCall& call;
  const IntShape shape = call.shape;
  const int64_t step = shape.block == 32 ? 32 : kTileRowBytes;  // columns of a tile
  // What is packed: `columns` from `first` on, of a panel and the next one.
  int64_t panel = 0, first = 0, columns = 0;
  int64_t first_block = 0, blocks = 0, steps = 0;  // steps per block; a block longer than a chunk counts as one
  alignas(64) int8_t bytes[kTwoPanels * kChunk];   // [step][2][columns / 4][16][4]
  alignas(64) float scales[kChunk / 32][2][kPanel];

  explicit RightTiles(const IntCall& c) : call(c) {}

  void pack(int64_t first_panel, int64_t k) {
    panel = first_panel;
    first = k;
    columns = smaller(kChunk, shape.inner - k);
    const int64_t block = smaller(shape.block, columns);
    first_block = k / shape.block;
    blocks = columns / block;
    steps = (block + step - 1) / step;
    for (int p = 0; p < kPanels; ++p) {
      const char* w = panel_at(p);
      int8_t* to = bytes + p * kPanel * step;
      for (int64_t i = 0; i < columns; i += step, to += kTwoPanels * step) pack_step(w, k + i, to);
      for (int64_t b = 0; b < blocks; ++b) pack_scales(w, first_block + b, scales[b][p]);
    }
    set_prefetch();
  }
  bool ends_row() const { return first + columns == shape.inner; }

  const char* panel_at(int p) const {  // the last panel again if past the end
    return static_cast<const char*>(call.w) + smaller(panel + p, call.panels - 1) * call.panel_bytes;
  }

  // Prefetches the next columns, some lines at every step.
  void prefetch_some() {
    if constexpr (L == Layout::unpacked) return;
    for (int64_t i = 0; i < fetch_each_ && fetch_ < fetch_end_; ++i, fetch_ += kLine) {
      for (int p = 0; p < kPanels; ++p) __builtin_prefetch(fetch_ + p * call.panel_bytes, 0, 2);
    }
  }

 private:
  static constexpr int64_t kColumnBytes = L == Layout::q4 ? 8 : 16;  // of a column of a panel

  // Bytes from a panel's start to a column.
  int64_t column_at(int64_t k) const {
    if constexpr (L == Layout::unpacked) return k * kColumnBytes;
    return k * kColumnBytes + (k / shape.block / 2 + 1) * kLine;
  }

  void pack_step(const char* w, int64_t k, int8_t* to) {
    const int64_t here = smaller(step, shape.inner - k);
    const char* from = w + column_at(k);
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(shape.offset));
    const auto put = [&to](__m512i line) __attribute__((always_inline)) {
      _mm512_store_si512(to, line);
      to += kLine;
    };
    for (int64_t i = 0; i < here; i += 64 / kColumnBytes, from += kLine) {
      const __m512i line = _mm512_loadu_si512(from);
      if constexpr (Subscales) {
        const Two two = times_subscale(line, w, (k + i) / shape.part);
        put(two.low);
        if constexpr (Wide) _mm512_store_si512(to - kLine + kPanel * step, two.high);
      } else if constexpr (L == Layout::q4) {
        const Ints both{{(IntRegister)line}};
        put(_mm512_sub_epi8((__m512i)masked(both, 0x0f0f0f0fU).part[0], offset));
        put(_mm512_sub_epi8((__m512i)masked(shifted_down<4>(both), 0x0f0f0f0fU).part[0], offset));
      } else {
        put(_mm512_sub_epi8(line, offset));
      }
    }
    for (int64_t i = here; i < step; i += 4) put(_mm512_setzero_si512());
  }

  // -sub (u - offset) = low + 256 high, both signed.
  struct Two {
    __m512i low, high;
  };
  Two times_subscale(__m512i line, const char* w, int64_t part) const {
    const char* lows = w + kPanel * (shape.inner + 4 * shape.blocks() * (Minima ? 2 : 1));
    const Ints sub = load_signed_bytes(reinterpret_cast<const int8_t*>(lows + kPanel * (2 * shape.parts() + part)));
    const Ints twice = masked(sub, 0xffffU) + shifted_up<16>(sub);  // for both 16-bit halves of a lane
    const __m512i offset = _mm512_set1_epi16(static_cast<int16_t>(shape.offset));
    const auto product = [&](__m512i u) __attribute__((always_inline)) {
      return _mm512_mullo_epi16(_mm512_sub_epi16(offset, u), (__m512i)twice.part[0]);
    };
    const __m512i even = product(_mm512_and_si512(line, _mm512_set1_epi16(255)));
    const __m512i odd = product(_mm512_srli_epi16(line, 8));
    const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaaULL;
    const __m512i half = _mm512_set1_epi16(128);
    return {_mm512_mask_mov_epi8(even, odd_bytes, _mm512_slli_epi16(odd, 8)),
            _mm512_mask_mov_epi8(_mm512_srli_epi16(_mm512_add_epi16(even, half), 8), odd_bytes,
                                 _mm512_add_epi16(odd, half))};
  }

  void pack_scales(const char* w, int64_t block, float* to) const {
    if constexpr (L == Layout::unpacked) {
      const Lanes scale = load(reinterpret_cast<const float*>(w + kPanel * (shape.inner + 4 * block)));
      store(to, Subscales ? -scale : scale);
    } else {
      const Ints both = load_words(w + column_at(block / 2 * 2 * shape.block) - kLine);
      store(to, as_floats(block % 2 == 0 ? shifted_up<16>(both) : masked(both, 0xffff0000U)));
    }
  }

  void set_prefetch() {
    if constexpr (L == Layout::unpacked) return;  // was just written
    const int64_t end = first + columns;
    const int64_t next = end < shape.inner ? end : 0, panels_on = end < shape.inner ? 0 : kPanels;
    fetch_ = static_cast<const char*>(call.w) + (panel + panels_on) * call.panel_bytes + column_at(next) - kLine;
    fetch_end_ = fetch_ + smaller(kChunk, shape.inner - next) * kColumnBytes + 2 * kLine;
    const int64_t times = (call.rows + 2 * kTileRows - 1) / (2 * kTileRows) * ((columns + step - 1) / step);
    fetch_each_ = ((fetch_end_ - fetch_) / kLine + times - 1) / times;
  }

  const char *fetch_ = nullptr, *fetch_end_ = nullptr;
  int64_t fetch_each_ = 0;  // lines per step
};

}  // namespace
}  // namespace qkv::kernels::cpu
