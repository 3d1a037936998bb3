// Tensor cores in software. A step is that of support/tensor_core.h, done quickly and for NaN and infinity too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu_by_hand {

inline constexpr int kStep = 16;

// Rows of sixteen bf16 as a step wants them.
struct Operand {
  int32_t significand[kStep], exponent[kStep];
  int32_t finite;
  float number[kStep];
};
void make_operand(Operand& made, const uint16_t (&bf16)[kStep]);
// *sums[i] += rows[i] column
void steps(float* const* sums, int count, const Operand* rows, const Operand& column);

// A product of a warpgroup that its warps carry out when they wait for it.
struct Product {
  float* d;
  int columns;
  uint64_t a, b;  // descriptors of tiles
  bool add, from_registers, a_along_rows, b_along_rows;
  uint32_t registers[4];
};
void add_product(const Product& product);
void end_products();
void wait_products(size_t but_the_last);
void products_are_done();  // when a thread ends

}  // namespace gpu_by_hand
