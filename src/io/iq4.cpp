#include "io/iq4.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

constexpr std::array<float, 16> kValues = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

constexpr size_t kPart = 32;  // numbers with one scale: 16 bytes

// Number i < 16 is the low half of byte i, number i + 16 the high half.
void decode_part(float scale, const std::byte* q, float* out) {
  for (size_t i = 0; i < kPart / 2; ++i) {
    const auto both = std::to_integer<size_t>(q[i]);
    out[i] = scale * kValues[both & 15];
    out[i + kPart / 2] = scale * kValues[both >> 4];
  }
}

float scale_at(const std::byte* at) {
  F16 d;
  std::memcpy(&d, at, sizeof(d));
  return to_float(d);
}

}  // namespace

bool is_iq4(std::string_view dtype) {
  return dtype == "IQ4_NL" || dtype == "IQ4_XS";
}

void decode_iq4(std::string_view dtype, std::span<const std::byte> in, std::span<float> out) {
  const StoredType& type = *find_stored_type(dtype);
  const size_t size = type.bits / 8;
  QKV_CHECK(out.size() % type.elements == 0 && in.size() == out.size() / type.elements * size, out.size(),
            " numbers of ", type.name, " take blocks of ", size, " bytes for ", type.elements, " but there are ",
            in.size(), " bytes", Hint("the shape and the bytes belong to different tensors"));
  for (size_t at = 0, to = 0; at < in.size(); at += size, to += type.elements) {
    const std::byte* const block = in.data() + at;
    const float d = scale_at(block);
    if (dtype == "IQ4_NL") {
      decode_part(d, block + 2, out.data() + to);
      continue;
    }
    // F16 d, then the two high bits of all 8 scales, then their low four bits two to a byte, then the quants
    const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(block[i]); };
    const uint32_t high = byte(2) | byte(3) << 8;
    for (size_t part = 0; part < 8; ++part) {
      const uint32_t low = byte(4 + part / 2) >> (4 * (part % 2)) & 15;
      const auto scale = static_cast<int>(low | (high >> (2 * part) & 3) << 4) - 32;
      decode_part(d * static_cast<float>(scale), block + 8 + part * kPart / 2, out.data() + to + part * kPart);
    }
  }
}

}  // namespace qkv
