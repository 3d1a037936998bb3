// Instructions of a warp, and copies.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "block.h"
#include "tensor_cores.h"

namespace gpu_by_hand {

void fetch(uint32_t to, const void* from, int bytes, int there);
void load_tile(uint32_t to, const CUtensorMap& map, std::array<int, 3> at, uint32_t barrier);
void load_bytes(uint32_t to, const void* from, int bytes, uint32_t barrier);
void store_bytes(void* to, uint32_t from, int bytes);

void read_fragments(uint32_t (&v)[4], uint32_t at, bool transposed);
void write_fragments(uint32_t at, const uint32_t (&v)[4]);
uint32_t transpose(uint32_t x);
void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
void mma_bytes(int (&d)[4], const std::array<uint32_t, 4>& a, uint32_t b0, uint32_t b1, int k);
inline void mma_bytes(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int k) {
  mma_bytes(d, std::array{a[0], a[1], a[2], a[3]}, b0, b1, k);
}
uint32_t multiply_pairs(uint32_t a, uint32_t b);

}  // namespace gpu_by_hand
