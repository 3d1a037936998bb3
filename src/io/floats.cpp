#include "io/floats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/blocks.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/float8.h"
#include "base/printable.h"
#include "io/iq4.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;

constexpr const char* kOtherTensor = "the shape and the bytes belong to different tensors";
constexpr std::array<std::string_view, 7> kPlainFloats{"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0"};
constexpr std::array<std::string_view, 4> kEncoded{"F32", "F16", "BF16", "Q8_0"};

const StoredType& type_of(std::string_view dtype) {
  const StoredType* const type = find_stored_type(dtype);
  QKV_ASSERT(type != nullptr, "the dtype ", printable(dtype), " is not known");
  return *type;
}

void check_plain(const StoredType& type, size_t bytes, size_t elements) {
  const uint64_t size = type.bits / 8;
  QKV_CHECK(bytes % size == 0 && bytes / size == elements, elements, " elements of ", type.name, " take ", size,
            " bytes each but there are ", bytes, " bytes", Hint(kOtherTensor));
}

template <class Stored, class Convert>
void decode_each(Bytes in, std::span<float> out, const Convert& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, in.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(value);
  }
}

template <class Stored, class Convert>
void encode_each(std::span<const float> in, std::span<std::byte> out, const Convert& convert) {
  for (size_t i = 0; i < in.size(); ++i) {
    const Stored value = convert(in[i]);
    std::memcpy(out.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

using Table = std::array<float, 256>;

template <class Convert>
Table table_of(const Convert& convert) {
  Table out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = convert(static_cast<uint8_t>(i));
  return out;
}

const Table& float8_table(std::string_view dtype) {
  static const Table e4m3 = table_of([](uint8_t bits) { return to_float(F8E4M3{bits}); });
  static const Table e5m2 = table_of([](uint8_t bits) { return to_float(F8E5M2{bits}); });
  static const Table e8m0 = table_of([](uint8_t bits) { return e8m0_to_float(bits); });
  if (dtype == "F8_E4M3") return e4m3;
  if (dtype == "F8_E5M2") return e5m2;
  QKV_ASSERT(dtype == "F8_E8M0", "the dtype ", printable(dtype), " is no 8-bit float");
  return e8m0;
}

}  // namespace

bool decodes_to_floats(std::string_view dtype) {
  const StoredType* const type = find_stored_type(dtype);
  return type != nullptr &&
         (type->block != Block::none || is_iq4(dtype) || std::ranges::find(kPlainFloats, dtype) != kPlainFloats.end());
}

void decode_floats(std::string_view dtype, Bytes in, std::span<float> out) {
  QKV_CHECK(decodes_to_floats(dtype), printable(dtype), " does not hold floats", Hint("weights are of a float type"));
  const StoredType& type = type_of(dtype);
  if (type.block != Block::none) return decode_blocks(type.block, in, out);
  if (is_iq4(dtype)) return decode_iq4(dtype, in, out);

  check_plain(type, in.size(), out.size());
  if (out.empty()) return;
  if (dtype == "F32") {
    std::memcpy(out.data(), in.data(), in.size());
  } else if (dtype == "F64") {
    decode_each<double>(in, out, [](double x) { return static_cast<float>(x); });
  } else if (dtype == "F16") {
    decode_each<F16>(in, out, [](F16 x) { return to_float(x); });
  } else if (dtype == "BF16") {
    decode_each<Bf16>(in, out, [](Bf16 x) { return to_float(x); });
  } else {
    const Table& table = float8_table(dtype);
    decode_each<uint8_t>(in, out, [&](uint8_t bits) { return table[bits]; });
  }
}

bool encodes_floats(std::string_view dtype) {
  return std::ranges::find(kEncoded, dtype) != kEncoded.end();
}

void encode_floats(std::string_view dtype, std::span<const float> in, std::span<std::byte> out) {
  QKV_CHECK(encodes_floats(dtype), "floats cannot be written as ", printable(dtype),
            Hint("use F32, F16, BF16 or Q8_0"));
  const StoredType& type = type_of(dtype);
  if (type.block == Block::q8_0) return encode_q8_0(in, out);

  check_plain(type, out.size(), in.size());
  if (in.empty()) return;
  if (dtype == "F32") {
    std::memcpy(out.data(), in.data(), out.size());
  } else if (dtype == "F16") {
    encode_each<F16>(in, out, [](float x) { return to_f16(x); });
  } else {
    encode_each<Bf16>(in, out, [](float x) { return to_bf16(x); });
  }
}

void decode_tiled_float8(const TiledFloat8& in, std::span<float> out) {
  QKV_CHECK(in.dtype == "F8_E4M3" || in.dtype == "F8_E5M2",
            "a weight with tile scales must be F8_E4M3 or F8_E5M2 but is ", printable(in.dtype),
            Hint("remove quantization_config from config.json if the weights are plain"));
  QKV_ASSERT(in.rows >= 0 && in.columns >= 0 && in.tile_rows > 0 && in.tile_columns > 0, "tiles of ", in.tile_rows,
             " x ", in.tile_columns, " on a matrix of ", in.rows, " x ", in.columns);
  const CheckedU64 elements = CheckedU64(in.rows, "the weight's size") * in.columns;
  QKV_CHECK(elements.value() == in.weight.size() && elements.value() == out.size(), "a weight of ", in.rows, " x ",
            in.columns, " has ", in.weight.size(), " bytes for ", out.size(), " floats", Hint(kOtherTensor));
  const auto tiles = [](int64_t size, int64_t tile) { return size / tile + (size % tile != 0 ? 1 : 0); };
  const int64_t down = tiles(in.rows, in.tile_rows), across = tiles(in.columns, in.tile_columns);
  QKV_CHECK((CheckedU64(down, "the number of tiles") * across).value() == in.scale.size(), "a weight of ", in.rows,
            " x ", in.columns, " in tiles of ", in.tile_rows, " x ", in.tile_columns, " needs ", down, " x ", across,
            " scales but has ", in.scale.size(), Hint("config.json's weight_block_size contradicts the file"));

  const Table& table = float8_table(in.dtype);
  const auto columns = static_cast<size_t>(in.columns), tile = static_cast<size_t>(in.tile_columns);
  for (size_t r = 0; r < static_cast<size_t>(in.rows); ++r) {
    const float* const scale = in.scale.data() + r / static_cast<size_t>(in.tile_rows) * static_cast<size_t>(across);
    for (size_t c = 0; c < columns; ++c) {
      out[r * columns + c] = table[std::to_integer<uint8_t>(in.weight[r * columns + c])] * scale[c / tile];
    }
  }
}

void decode_mxfp4_pairs(Bytes blocks, Bytes scales, std::span<float> out) {
  constexpr size_t kBytes = 16;
  QKV_CHECK(blocks.size() % kBytes == 0 && blocks.size() / kBytes == scales.size(), "mxfp4: ", blocks.size(),
            " bytes are ", blocks.size() / kBytes, " blocks of 16 but there are ", scales.size(), " scales",
            Hint(kOtherTensor));
  QKV_CHECK(out.size() == 2 * blocks.size(), "mxfp4: ", blocks.size(), " bytes hold ", 2 * blocks.size(),
            " elements but there are ", out.size(), Hint(kOtherTensor));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const float scale = e8m0_to_float(std::to_integer<uint8_t>(scales[i / kBytes]));
    const auto pair = std::to_integer<size_t>(blocks[i]);
    out[2 * i] = kFp4[pair & 15] * scale;
    out[2 * i + 1] = kFp4[pair >> 4] * scale;
  }
}

}  // namespace qkv
