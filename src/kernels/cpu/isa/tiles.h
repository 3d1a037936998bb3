// AMX tiles: registers of sixteen rows of 64 bytes, and products of them.
//
//   product of bf16    c[m][n] += sum of 32 products a[m][k] b[k][n]; a is [m][k], b is pairs, [k / 2][n][2]
//                      two chains of fused multiply-adds, even k and odd k, from zero; their sum is added to c
//   product of bytes   c[m][n] += sum of 64 products, exact; b is fours, [k / 4][n][4]
//
// Results are f32 rounded to nearest, denormals are flushed, whatever the thread's float mode. A row of c depends on
// its row of a and on b alone.
//
// Tiles 0 to 3 hold sums, 4 and 5 left operands, 6 and 7 right operands. They are always full: missing rows and columns
// are zeros in memory. Only k can be shorter than a tile.
#pragma once

#include "kernels/cpu/isa/simd.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kTileRows = 16, kTileRowBytes = 64, kTileBytes = kTileRows * kTileRowBytes;
constexpr int64_t kTileInner = 32;  // of bf16

// Not GCC's intrinsics: they declare no memory operand, so earlier stores might be moved behind them.
template <int Tile>
QKV_INLINE void load_tile(const void* from, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(Tile) : "memory");
}
template <int Tile>
QKV_INLINE void stream_tile(const void* from, int64_t stride_bytes) {  // non-temporal hint: not used again soon
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(Tile) : "memory");
}
template <int Tile>
QKV_INLINE void store_tile(void* to, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(Tile) : "memory");
}
template <int Tile>
QKV_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int Sum, int Left, int Right>
QKV_INLINE void multiply_tiles() {  // of bf16
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
}
template <int Sum, int Left, int Right>
QKV_INLINE void multiply_byte_tiles() {  // of signed bytes
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
}

// Configures the calling thread's tiles for the lifetime of the object.
class UseTiles {
 public:
  // Bytes along k: of a row of the left operand; the right one has a quarter as many rows.
  explicit UseTiles(int64_t inner_bytes = kTileRowBytes) {
    Config config;
    config.row_bytes[4] = config.row_bytes[5] = static_cast<uint16_t>(inner_bytes);
    config.rows[6] = config.rows[7] = static_cast<uint8_t>(inner_bytes / 4);
    // Not _tile_loadconfig: GCC 12 may drop the stores to the struct before it.
    asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  UseTiles(const UseTiles&) = delete;
  UseTiles& operator=(const UseTiles&) = delete;
  ~UseTiles() { _tile_release(); }  // else every context switch saves 8 KiB

 private:
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Config) == 64);
};

}  // namespace
}  // namespace qkv::kernels::cpu
