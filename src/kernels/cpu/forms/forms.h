// Inner loops on plain pointers, compiled once per instruction set (see CMakeLists.txt). These files include no header
// but <cstdint> and their own: an inline function built here for a newer CPU must never end up in code an older one
// runs.
//
// One order of additions for every instruction set and any number of rows:
//   dots   element k goes to lane k % 16; the lanes are added as a tree, i + (i + 8), then 4, 2, 1
//   mix    a chain over the inner index, one fused multiply-add after the other
// (`plain` has no fused multiply-add and rounds the product first.)
#pragma once

#include <cstdint>

namespace qkv::kernels::cpu {

// y[m][o] = sum_k x[m][k] w[o][k]. Strides in elements; bf16 operands as their 16 bits.
struct DotCall {
  const void* x = nullptr;
  const void* w = nullptr;
  float* y = nullptr;
  int64_t x_stride = 0, w_stride = 0, y_stride = 0;
  int64_t rows = 0, outputs = 0, inner = 0;
};

// y[m][c] = (add ? y[m][c] : 0) + sum_l a[m a_row + l a_inner] b[l][c]
struct MixCall {
  const float* a = nullptr;
  const void* b = nullptr;
  float* y = nullptr;
  int64_t a_row = 0, a_inner = 0, b_stride = 0, y_stride = 0;
  int64_t rows = 0, inner = 0, cols = 0;
  bool add = false;
};

// Keys of one block; blocks start at multiples of it, counted from a sequence's first key.
constexpr int64_t kKeyBlock = 64;

struct SoftmaxStep {
  float* scores = nullptr;  // [kKeyBlock], -inf where hidden; multiplied by scale on the way
  float* probs = nullptr;   // [kKeyBlock], exp(score - highest)
  float scale = 1;
  float highest = 0, total = 0;  // of all blocks so far
  float rescale = 1;             // what sums of earlier blocks are to be multiplied with
};

struct GradientStep {
  const float* scores = nullptr;  // [kKeyBlock], -inf where hidden
  const float* dp = nullptr;      // d loss / d prob
  float* probs = nullptr;
  float* ds = nullptr;  // d loss / d (scale * score); may be dp
  float scale = 1, lse = 0, delta = 0;
};

struct Forms {
  const char* name;
  void (*dots_f32)(const DotCall&) noexcept;
  void (*dots_bf16)(const DotCall&) noexcept;
  void (*mix_f32)(const MixCall&) noexcept;
  void (*mix_bf16)(const MixCall&) noexcept;
  void (*widen)(float* y, const uint16_t* x, int64_t count) noexcept;   // bf16 -> f32
  void (*narrow)(uint16_t* y, const float* x, int64_t count) noexcept;  // f32 -> bf16, to nearest even
  void (*softmax_step)(SoftmaxStep&) noexcept;
  void (*gradient_step)(const GradientStep&) noexcept;
  void (*scale_row)(float* y, int64_t count, float factor) noexcept;
};

extern const Forms plain_forms, avx2_forms, avx512_forms;

}  // namespace qkv::kernels::cpu
