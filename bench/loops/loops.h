// Inner loops that reach a limit of the machine, each compiled for the instruction set in its name (see
// CMakeLists.txt). As in src/kernels/cpu/isa these files include nothing but <cstdint> and <immintrin.h>, so that no
// inline function built for a newer CPU can reach an older one.
#pragma once

#include <cstdint>

namespace qkv::bench {

// Products with their operands in L1. `data` is kPanelBytes of random numbers of the loop's own type, on a cache line;
// `sink` takes kSinkBytes, so that the compiler drops no work.
constexpr int64_t kPanelBytes = 16 << 10, kSinkBytes = 1 << 10;
struct ProductLoop {
  double work;  // operations of one round, a multiply-add counted as two
  void (*run)(const void* data, int64_t rounds, void* sink) noexcept;
};

// Reads `bytes` in 1 or 8 streams, each a separate part; a multiple of 4 KiB per stream.
using ReadLoop = void (*)(const void* data, int64_t bytes, int streams, void* sink) noexcept;

extern const ProductLoop f32_plain_loop, f32_avx2_loop, f32_avx512_loop, bf16_avx512_loop, int8_avx512_loop,
    bf16_amx_loop, int8_amx_loop;
extern const ReadLoop read_plain_loop, read_avx2_loop, read_avx512_loop;

}  // namespace qkv::bench
