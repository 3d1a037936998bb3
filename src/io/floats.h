// Conversion of stored weights to float32 and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace qkv {

bool decodes_to_floats(std::string_view dtype);

// F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 and the block types. Whole elements or blocks, at any address; an Error
// unless the sizes match.
void decode_floats(std::string_view dtype, std::span<const std::byte> in, std::span<float> out);

bool encodes_floats(std::string_view dtype);

// F32 F16 BF16 Q8_0, rounded to nearest.
void encode_floats(std::string_view dtype, std::span<const float> in, std::span<std::byte> out);

// One matrix of 8-bit floats with a scale for each tile, as DeepSeek stores them (weight, weight_scale_inv):
//   out[r][c] = weight[r][c] * scale[r / tile_rows][c / tile_columns]       the last tiles may be partial
struct TiledFloat8 {
  std::string_view dtype;  // F8_E4M3 or F8_E5M2
  std::span<const std::byte> weight;
  std::span<const float> scale;
  int64_t rows, columns;
  int64_t tile_rows = 128, tile_columns = 128;
};
void decode_tiled_float8(const TiledFloat8& in, std::span<float> out);

// MXFP4 as gpt-oss stores it (_blocks, _scales): 16 bytes per block, the low half of byte i is element 2 i. (GGUF
// blocks contain their scale and have another order: decode_floats("MXFP4").)
//   out[32 b + i] = fp4[b][i] * 2^(scales[b] - 127)
void decode_mxfp4_pairs(std::span<const std::byte> blocks, std::span<const std::byte> scales, std::span<float> out);

}  // namespace qkv
