// Gradients of attention with wgmma: what its kernels share. Formulas in kernels/ref/attention_backward.cpp.
//
//   dq:      64 or 128 rows a block, keys in blocks of 64 ascending from the segment's first. Also delta, as the
//            diagonal of dz z^T: in dP's own order, so that a row that sees one key has gradients of exactly zero.
//   dk, dv:  64 keys a block; query heads of the key head in order, rows in blocks of 64 ascending from the segment's
//            first. S^T = k q^T and dP^T = v dz^T, so that P^T and dS^T stay in registers as left operands.
//   all:     of sequences of up to 128 rows and keys, at once, in the same orders.
//
// Every product is a chain of k16 steps with f32 sums; P and dS are rounded to bf16 between; scale at the end. What a
// row does not see is zero in P and dS and leaves sums as they are, so that neither the place of a tile nor its
// neighbours change a bit.
#pragma once

#include <cuda.h>

#include "kernels/cuda/attention/attention_drop.h"
#include "kernels/cuda/attention/attention_tiles.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/wgmma.h"
#include "kernels/cuda/wgmma_layout.h"

namespace qkv::kernels::cuda {

// One gradient as a kernel writes it: bf16, rows and heads at multiples of 16 bytes.
struct HeadGradient {
  __nv_bfloat16* data = nullptr;
  int64_t row = 0, head = 0;  // strides
  int columns = 0;
  bool add = false;

  HeadGradient() = default;
  explicit HeadGradient(const Grad& g);
};

struct BackwardPass {
  TilePlan plan{};
  View segments;
  const int32_t* kv_map = nullptr;  // [H]
  float2* stats = nullptr;          // [H, blocks of rows, 64]: LSE log2(e) and delta; LSE is NaN where delta is
  Sight sight;
  float scale = 1;
  View lse, delta;
  HeadGradient dq, dk, dv;
  int heads = 0, kv_heads = 0, width = 0;  // the wider of q's and v's heads
  DropMask drop;
};
// Heads of q, k, v, dz and z: boxes of 64 columns of one head by 64 rows; columns past the head arrive as zeros.
struct BackwardMaps {
  CUtensorMap q, k, v, dz, z;
};

int dq_tile_rows(int width);
void find_dq_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps);
void find_dk_dv_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps);

// All of them, and delta, where all_short() and nothing is dropped; without plan and stats. False where the
// heads are too many or too wide.
bool find_short_wgmma(const Exec& exec, const BackwardPass& pass, const BackwardMaps& maps, int64_t sequences);

}  // namespace qkv::kernels::cuda
