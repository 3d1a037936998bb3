#include "core/dtype.h"

#include <array>

#include "base/error.h"

namespace qkv {
namespace {

struct BlockShape {
  const char* name;
  int64_t elements, bytes;
};

// In the order of enum Block. Element and byte counts are those of the GGUF container.
constexpr std::array<BlockShape, 12> kBlocks{{{"plain", 1, 0},
                                              {"q8_0", 32, 34},
                                              {"q4_0", 32, 18},
                                              {"q4_1", 32, 20},
                                              {"q5_0", 32, 22},
                                              {"q5_1", 32, 24},
                                              {"q2_k", 256, 84},
                                              {"q3_k", 256, 110},
                                              {"q4_k", 256, 144},
                                              {"q5_k", 256, 176},
                                              {"q6_k", 256, 210},
                                              {"mxfp4", 32, 17}}};

const BlockShape& shape_of(Block b) {
  return kBlocks[static_cast<size_t>(b)];
}

}  // namespace

const char* name_of(DType t) {
  switch (t) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i8:
      return "i8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, DType t) {
  return out << name_of(t);
}

std::ostream& operator<<(std::ostream& out, Format f) {
  return out << (f.plain() ? name_of(f.dtype) : shape_of(f.block).name);
}

int64_t Format::block_elements() const {
  return shape_of(block).elements;
}

int64_t Format::block_bytes() const {
  return plain() ? size_of(dtype) : shape_of(block).bytes;
}

int64_t Format::bytes_for(int64_t elements) const {
  QKV_CHECK(elements % block_elements() == 0, "format ", *this, " holds blocks of ", block_elements(),
            " elements but the row has ", elements,
            Hint("use a width that is a multiple of the block, or a plain dtype"));
  int64_t bytes = 0;
  QKV_CHECK(!__builtin_mul_overflow(elements / block_elements(), block_bytes(), &bytes), "a tensor of ", elements,
            " elements of ", *this, " does not fit in 64-bit byte counts");
  return bytes;
}

float to_float(F16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1fU;
  const uint32_t mantissa = x.bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24F;  // zero and subnormals
  return sign != 0 ? -tiny : tiny;
}

F16 to_f16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000U);
  const uint32_t magnitude = u & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<uint16_t>(sign | 0x7e00U)};
  if (magnitude >= 0x477ff000U) return {static_cast<uint16_t>(sign | 0x7c00U)};  // rounds past 65504: infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 1/2 leaves the subnormal's bits, rounded, at the bottom
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U))};
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

}  // namespace qkv
