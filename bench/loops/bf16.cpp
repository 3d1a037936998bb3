// vdpbf16ps: pairs of bf16, sums in f32.
#include <immintrin.h>

namespace qkv::bench {
namespace {

using Vector = __m512;  // holds 32 bf16 values as a factor
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}

}  // namespace
}  // namespace qkv::bench

#include "products.h"

namespace qkv::bench {
const ProductLoop bf16_avx512_loop{kMultiplyAdds * 2 * 32, products};
}
