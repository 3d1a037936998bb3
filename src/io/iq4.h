// GGUF's 4-bit blocks with a table of values: each quant is an index into 16 values that lie closer around zero.
//
//   IQ4_NL   x = d v[q]            32 to a block of 18 bytes
//   IQ4_XS   x = d (s - 32) v[q]   256 to a block of 136 bytes, s of 6 bits per 32
//
// No kernel multiplies them in place: they are decoded when a model is loaded.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace qkv {

bool is_iq4(std::string_view dtype);
// An Error unless the sizes fit each other.
void decode_iq4(std::string_view dtype, std::span<const std::byte> in, std::span<float> out);

}  // namespace qkv
