// Products of quantised weights and activations: exact integer sums inside a block, one f32 chain over the blocks of a
// row. Compiled once per instruction set like isa_kernels.h, but apart from it: only these loops need VNNI.
//
// A row of activations is split into blocks of G elements with one scale each, and parts of S elements with one sum
// each:
//   scale = max |x| / 127,  q = round to even (x (127 / max))
//   scale = 0,    q = 0 where max < kSmallest
//   scale = NaN,  q = 0 where x is not finite
// Weights are bytes u with an offset. For every output, block by block, each operation rounded on its own:
//   I = sum over parts of sub * sum over the part of q (u - offset)      an integer; sub is 1 where there is none
//   M = sum over parts of low * sum over the part of q                   an integer, where the format has minima
//   y = y + float(I) * (scale_w * scale_x);  y = y + float(M) * (min_w * scale_x)
// so every instruction set and every tile size gives the same bits.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/isa_kernels.h"

namespace qkv::kernels::cpu {

constexpr int64_t kPanel = 16;          // rows of weights that are interleaved, as kPanelRows
constexpr float kSmallest = 0x1p-100F;  // blocks whose largest number is below are zero

// How a format splits its rows, and what its weights have.
struct IntShape {
  int64_t inner = 0, block = 0, part = 0;  // K, G, S in elements
  int32_t offset = 0;                      // of the bytes; formats with minima have none
  bool minima = false, subscales = false;
  bool wide = false;  // -sub (u - offset) does not fit a signed byte

  int64_t blocks() const { return inner / block; }
  int64_t parts() const { return inner / part; }
  // Bytes of a row of activations, and of sixteen unpacked rows of weights. q is padded to a multiple of 64 bytes:
  // tiles read the padding and multiply it by zeros.
  int64_t row_bytes() const { return (inner + 4 * blocks() + (subscales ? 2 : 4) * parts() + 63) / 64 * 64; }
  int64_t panel_bytes() const {
    return kPanel * (inner + 4 * blocks() * (minima ? 2 : 1) + (subscales ? 3 * parts() : 0));
  }
};

// A quantised row of activations.
struct IntRow {
  int8_t* q = nullptr;           // [K]
  float* scales = nullptr;       // [K / G]
  int32_t* sums = nullptr;       // [K / S], times -offset where the format has one
  int16_t* part_sums = nullptr;  // [K / S], instead of `sums` where the format has subscales
};

struct QuantizeRow {
  FloatRow x;
  IntShape shape;
  IntRow row;
};

// y[r][16 p + lane] for rows of activations and panels of weights.
struct IntCall {
  const IntRow* x = nullptr;
  const void* w = nullptr;
  float* y = nullptr;
  int64_t rows = 0, panels = 0, outputs = 0;  // the last panel may have fewer outputs
  int64_t panel_bytes = 0, y_stride = 0;
  IntShape shape;
};

// Unpacks up to sixteen rows of GGUF blocks into a panel of bytes:
//   bytes [K / 4][16][4], f32 scales [K / G][16], minima alike, i16 lows [K / S / 2][16][2], i8 subscales [K / S][16]
// With an offset and no minima, lows are a copy of the subscales (for the offset's share of the sum).
struct UnpackCall {
  const uint8_t* w = nullptr;
  int64_t row_bytes = 0, rows = 0;
  void* panel = nullptr;
  IntShape shape;
};

// One row of activations times rows of GGUF blocks in place, a multiple of sixteen.
struct InPlaceCall {
  IntRow x;
  const uint8_t* w = nullptr;
  float* y = nullptr;
  int64_t row_bytes = 0, outputs = 0;
  IntShape shape;
};

struct IntIsaKernels {
  static constexpr int kGguf = 11;  // formats, in the order of Block
  const char* name;
  void (*quantize_row)(const QuantizeRow&) noexcept;
  void (*q8)(const IntCall&) noexcept;
  void (*q4)(const IntCall&) noexcept;
  void (*unpacked)(const IntCall&) noexcept;
  void (*unpack[kGguf])(const UnpackCall&) noexcept;
  void (*in_place[kGguf])(const InPlaceCall&) noexcept;  // null: unpack first
};

extern const IntIsaKernels plain_int_isa, avx2_int_isa, avx512vnni_int_isa, amx_int_isa;

}  // namespace qkv::kernels::cpu
