// Register tiles of outputs: some rows of activations times some panels of weights (int_isa_kernels.h).
#pragma once

#include "kernels/cpu/isa/int_isa_kernels.h"
#include "kernels/cpu/isa/ints.h"

namespace qkv::kernels::cpu {
namespace {

// A tile holds an integer and a float sum in registers for every row and panel, with subscales one more integer.
#if defined(__AVX512VNNI__)
constexpr int kMostRows = 6, kMostRowsWithSubscales = 4, kTilePanels = 2;
constexpr int kStreams = 8;  // panels a single row reads in parallel
#elif defined(__AVX2__)
constexpr int kMostRows = 2, kMostRowsWithSubscales = 1, kTilePanels = 1;
constexpr int kStreams = 1;
#else
constexpr int kMostRows = 1, kMostRowsWithSubscales = 1, kTilePanels = 1;
constexpr int kStreams = 1;
#endif

enum class Layout { q8, q4, unpacked };  // of a panel: core/panels.h, or UnpackCall

template <Layout L, bool Minima = false, bool Subscales = false>
struct IntTiles {
  static constexpr int kRows = Subscales ? kMostRowsWithSubscales : kMostRows;
  static constexpr int64_t kLine = 64;

  // Panels of a tile are `stride` bytes apart.
  template <int Rows, int Panels>
  static void tile(const IntCall& c, const IntRow* x, const char* w, int64_t stride, float* y, int64_t outputs) {
    const IntShape shape = c.shape;
    const char* scales = w + kPanel * shape.inner;  // unpacked
    const char* minima = scales + kPanel * 4 * shape.blocks();
    const char* lows = minima + (Minima ? kPanel * 4 * shape.blocks() : 0);
    const char* subscales = lows + kPanel * 2 * shape.parts();
    const int8_t* q[unsigned{Rows}];
    Lanes sums[unsigned{Rows}][unsigned{Panels}];
    for (int r = 0; r < Rows; ++r) {
      q[r] = x[r].q;
      for (int p = 0; p < Panels; ++p) sums[r][p] = splat(0);
    }
    const char* scale_line = w;
    int64_t k = 0, part = 0;
    for (int64_t block = 0; block < shape.blocks(); ++block) {
      if constexpr (L != Layout::unpacked) {
        if (block % 2 == 0) {
          scale_line = w;
          w += kLine;
        }
      }
      Ints totals[unsigned{Rows}][unsigned{Panels}], lowest[unsigned{Rows}][unsigned{Panels}];
      if constexpr (Subscales) {
        for (int r = 0; r < Rows; ++r) {
          for (int p = 0; p < Panels; ++p) totals[r][p] = lowest[r][p] = splat_int(0);
        }
      }
      const int64_t end = k + shape.block;
      do {
        Ints parts[unsigned{Rows}][unsigned{Panels}];
        for (int r = 0; r < Rows; ++r) {
          for (int p = 0; p < Panels; ++p) parts[r][p] = splat_int(Minima || Subscales ? 0 : x[r].sums[part]);
        }
        const auto four_columns = [&](const Ints* bytes) __attribute__((always_inline)) {
          for (int r = 0; r < Rows; ++r) {
            const Four four = splat_four(q[r] + k);
            for (int p = 0; p < Panels; ++p) parts[r][p] = dot4(parts[r][p], bytes[p], four);
          }
          k += 4;
        };
        const int64_t part_end = k + shape.part;
        while (k < part_end) {
          Ints lines[unsigned{Panels}], bytes[unsigned{Panels}];
          for (int p = 0; p < Panels; ++p) lines[p] = load_words(w + p * stride);
          if constexpr (L == Layout::q4) {
            for (int p = 0; p < Panels; ++p) bytes[p] = masked(lines[p], 0x0f0f0f0fU);
            four_columns(bytes);
            for (int p = 0; p < Panels; ++p) bytes[p] = masked(shifted_down<4>(lines[p]), 0x0f0f0f0fU);
            four_columns(bytes);
          } else {
            four_columns(lines);
          }
          w += kLine;
        }
        for (int p = 0; p < Panels; ++p) {
          if constexpr (Subscales) {
            const Ints sub = load_signed_bytes(reinterpret_cast<const int8_t*>(subscales + p * stride + kPanel * part));
            for (int r = 0; r < Rows; ++r) totals[r][p] = totals[r][p] + parts[r][p] * sub;
          } else {
            for (int r = 0; r < Rows; ++r) {
              totals[r][p] = parts[r][p];
              if constexpr (Minima) lowest[r][p] = splat_int(x[r].sums[part]);
            }
          }
        }
        ++part;
      } while (k < end);
      if constexpr (Subscales) {
        for (int64_t two = part - shape.block / shape.part; two < part; two += 2) {
          for (int p = 0; p < Panels; ++p) {
            const Ints low = load_words(lows + p * stride + 2 * kPanel * two);
            for (int r = 0; r < Rows; ++r) lowest[r][p] = dot2(lowest[r][p], low, splat_two(x[r].part_sums + two));
          }
        }
        for (int r = 0; r < Rows && !Minima; ++r) {
          for (int p = 0; p < Panels; ++p) totals[r][p] = totals[r][p] + lowest[r][p] * splat_int(-shape.offset);
        }
      }
      for (int p = 0; p < Panels; ++p) {
        Lanes scale;
        if constexpr (L == Layout::unpacked) {
          scale = load(reinterpret_cast<const float*>(scales + p * stride + kLine * block));
        } else {
          const Ints both = load_words(scale_line + p * stride);
          scale = as_floats(block % 2 == 0 ? shifted_up<16>(both) : masked(both, 0xffff0000U));
        }
        for (int r = 0; r < Rows; ++r) {
          sums[r][p] = sums[r][p] + to_floats(totals[r][p]) * (scale * splat(x[r].scales[block]));
        }
        if constexpr (Minima) {
          const Lanes low = load(reinterpret_cast<const float*>(minima + p * stride + kLine * block));
          for (int r = 0; r < Rows; ++r) {
            sums[r][p] = sums[r][p] + to_floats(lowest[r][p]) * (low * splat(x[r].scales[block]));
          }
        }
      }
    }
    for (int p = 0; p < Panels; ++p) {
      const int64_t here = outputs - p * kPanel < kPanel ? outputs - p * kPanel : kPanel;
      for (int r = 0; r < Rows && here > 0; ++r) store_some(y + r * c.y_stride + p * kPanel, sums[r][p], here);
    }
  }

  // The largest tiles that fit; panels stay in the cache while all rows stream through.
  template <int Rows, int Panels>
  static void rows_from(const IntCall& c, int64_t row, int64_t panel, int64_t stride) {
    for (; row + Rows <= c.rows; row += Rows) {
      tile<Rows, Panels>(c, c.x + row, static_cast<const char*>(c.w) + panel * c.panel_bytes, stride,
                         c.y + row * c.y_stride + panel * kPanel, c.outputs - panel * kPanel);
    }
    if constexpr (Rows > 1) {
      if (row < c.rows) rows_from<Rows == 6 ? 4 : Rows / 2, Panels>(c, row, panel, stride);
    }
  }

  static void run(const IntCall& c) noexcept {
    int64_t panel = 0;
    if constexpr (kStreams > kTilePanels && !Subscales) {
      if (c.rows == 1) {
        for (; panel + kStreams <= c.panels; panel += kStreams) rows_from<1, kStreams>(c, 0, panel, c.panel_bytes);
      }
    }
    for (; panel < c.panels; panel += kTilePanels) {
      // A tile past the last panel reads the last one again and stores nothing.
      rows_from<kRows, kTilePanels>(c, 0, panel, panel + kTilePanels <= c.panels ? c.panel_bytes : 0);
    }
  }
};

void unpacked_products(const IntCall& c) noexcept {
  if (c.shape.subscales) {
    return c.shape.minima ? IntTiles<Layout::unpacked, true, true>::run(c)
                          : IntTiles<Layout::unpacked, false, true>::run(c);
  }
  return c.shape.minima ? IntTiles<Layout::unpacked, true>::run(c) : IntTiles<Layout::unpacked>::run(c);
}

}  // namespace
}  // namespace qkv::kernels::cpu
