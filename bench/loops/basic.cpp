// f32 products and reading, compiled once per instruction set.
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace qkv::bench {
namespace {

#if defined(__AVX512F__)
#define QKV_F32_LOOP f32_avx512_loop
#define QKV_READ_LOOP read_avx512_loop
using Vector = __m512;
using Word = __m512i;
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
#elif defined(__AVX2__)
#define QKV_F32_LOOP f32_avx2_loop
#define QKV_READ_LOOP read_avx2_loop
using Vector = __m256;
using Word = __m256i;
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
#else
#define QKV_F32_LOOP f32_plain_loop
#define QKV_READ_LOOP read_plain_loop
typedef float Vector __attribute__((vector_size(16)));
typedef int64_t Word __attribute__((vector_size(16)));
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return a * b + c;
}
#endif

}  // namespace
}  // namespace qkv::bench

#include "products.h"

namespace qkv::bench {
namespace {

constexpr int64_t kLine = 64 / int64_t{sizeof(Word)};  // words of a cache line

template <int Streams, int Lines>
void read_streams(const Word* data, int64_t words, Word* sums) noexcept {
  const int64_t part = words / Streams;
  for (int64_t i = 0; i < part; i += Lines * kLine) {
#pragma GCC unroll 8
    for (int s = 0; s < Streams; ++s) {
#pragma GCC unroll 32
      for (int64_t w = 0; w < Lines * kLine; ++w) sums[(s * Lines + w) % 8] ^= data[s * part + i + w];
    }
  }
}

void read(const void* data, int64_t bytes, int streams, void* sink) noexcept {
  const Word* words = static_cast<const Word*>(data);
  Word sums[8] = {};
  if (streams == 8) {
    read_streams<8, 1>(words, bytes / int64_t{sizeof(Word)}, sums);
  } else {
    read_streams<1, 8>(words, bytes / int64_t{sizeof(Word)}, sums);
  }
  static_assert(sizeof sums <= kSinkBytes);
  __builtin_memcpy(sink, sums, sizeof sums);
}

}  // namespace

const ProductLoop QKV_F32_LOOP{kMultiplyAdds * 2 * (sizeof(Vector) / sizeof(float)), products};
const ReadLoop QKV_READ_LOOP = read;

}  // namespace qkv::bench
