// Pairs of columns turned by an angle; formulas in ops/rotary.cpp.
#pragma once

namespace qkv::kernels::cuda {

// N pairs: (one[k], two[k]), or where interleaved the 2 N numbers of `one` and then `two`, two by two.
template <int N, class R>
__device__ void turn_pairs(R (&one)[N], R (&two)[N], const R (&cos)[N], const R (&sin)[N], bool interleaved) {
  R x1[N], x2[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    x1[k] = !interleaved ? one[k] : 2 * k < N ? one[2 * k % N] : two[2 * k % N];
    x2[k] = !interleaved ? two[k] : 2 * k + 1 < N ? one[(2 * k + 1) % N] : two[(2 * k + 1) % N];
    const R left = x1[k];
    x1[k] = left * cos[k] - x2[k] * sin[k];
    x2[k] = x2[k] * cos[k] + left * sin[k];
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    one[k] = !interleaved ? x1[k] : k % 2 == 0 ? x1[k / 2] : x2[k / 2];
    two[k] = !interleaved ? x2[k] : (N + k) % 2 == 0 ? x1[(N + k) / 2] : x2[(N + k) / 2];
  }
}

}  // namespace qkv::kernels::cuda
