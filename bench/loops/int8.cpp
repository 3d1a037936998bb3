// vpdpbusd (VNNI): groups of four int8, sums in int32.
#include <immintrin.h>

namespace qkv::bench {
namespace {

using Vector = __m512i;
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return _mm512_dpbusd_epi32(c, a, b);
}

}  // namespace
}  // namespace qkv::bench

#include "products.h"

namespace qkv::bench {
const ProductLoop int8_avx512_loop{kMultiplyAdds * 2 * 64, products};
}
