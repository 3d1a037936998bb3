// Quantises a row of activations to bytes, scales and sums (int_isa_kernels.h).
#pragma once

#include "kernels/cpu/isa/int_isa_kernels.h"
#include "kernels/cpu/isa/ints.h"
#include "kernels/cpu/isa/rows.h"

namespace qkv::kernels::cpu {
namespace {

void quantize_row(const QuantizeRow& call) noexcept {
  const IntShape shape = call.shape;
  const FloatRow x = call.x;
  const IntRow row = call.row;
  int64_t k = 0;
  for (int64_t block = 0; block < shape.blocks(); ++block) {
    // The bits of |x| sort like the values, infinity and NaN above all.
    Ints top = splat_int(0);
    for (int64_t i = k; i < k + shape.block; i += kLanes) top = larger(top, as_ints(absolute(load(x, i, kLanes))));
    const int32_t bits = largest_of(top);
    float highest;
    __builtin_memcpy(&highest, &bits, 4);
    const bool finite = bits < 0x7f800000, small = bits < 0x0d800000;  // kSmallest
    const float inverse = finite && !small ? 127 / highest : 0;
    row.scales[block] = !finite ? __builtin_nanf("") : small ? 0 : highest / 127;
    for (const int64_t end = k + shape.block; k < end;) {
      Ints sums = splat_int(0);
      const int64_t part = k / shape.part;
      for (const int64_t part_end = k + shape.part; k < part_end; k += kLanes) {
        const Ints q = finite ? rounded(load(x, k, kLanes) * splat(inverse)) : splat_int(0);
        sums = sums + q;
        for (int p = 0; p < kParts; ++p) {
          typedef int8_t ByteRegister __attribute__((vector_size(kRegister)));
          const auto bytes = __builtin_convertvector(q.part[p], ByteRegister);
          __builtin_memcpy(row.q + k + p * kRegister, &bytes, sizeof(bytes));
        }
      }
      const int32_t sum = sum_of(sums);
      if (shape.subscales) {
        row.part_sums[part] = static_cast<int16_t>(sum);  // of 32 bytes at most
      } else {
        row.sums[part] = shape.minima ? sum : -shape.offset * sum;
      }
    }
  }
}

}  // namespace
}  // namespace qkv::kernels::cpu
