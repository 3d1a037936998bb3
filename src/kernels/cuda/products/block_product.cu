// Products with weights in blocks, y = x w^T, as docs/kernels.md defines them and with the CPU's bits: x is rounded to
// int8, the integer tensor core adds a block exactly, and blocks are added in order, each operation rounded on its own:
//
//   y = y + float(I) * (d * s);   y = y + float(M) * (m * s)
//
// Products of one x share its rounding, and a launch where their formats are the same.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/block_rows.h"
#include "kernels/cuda/products/blocks.h"

namespace qkv::kernels::cuda {
namespace {

using namespace blocks;

constexpr int64_t kMostRows = int64_t{kMostAcross} * 64;  // of a grid of block_many.cu

// Columns that share a scale of x, and those that share a sum.
struct Rounding {
  int64_t block = 0, part = 0;
  friend bool operator==(const Rounding&, const Rounding&) = default;
};
Rounding rounding_for(const LinearArgs& a) {
  const Format format = a.w.format();
  const int64_t block = !format.panels() ? format.block_elements() : format.group > 0 ? format.group : a.x.cols();
  return {block, format.block == Block::q2_k ? 16 : 32};
}

// Eight columns from an offset on, in one piece where they lie so.
__device__ void read_eight(const View& x, int64_t at, bool wide, float (&v)[8]) {
  if (wide) {
    const uint4 words = *reinterpret_cast<const uint4*>(x.data + 2 * at);
    const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = __uint_as_float(pairs[i] << 16);
      v[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000U);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = x.get<float>(at + i);
}

// Rows of x as bytes: s = max |x| / 127, q = round to even (x (127 / max)). A lane takes eight columns, a warp blocks of 256 columns
// in all, or one that is wider or does not divide them.
void round_to_bytes(const Exec& exec, const Tensor& from, const Rounding& rounding, const BlockJob& job) {
  const View x(from);
  const int block = static_cast<int>(rounding.block), part_lanes = static_cast<int>(rounding.part) / 8;
  const bool several = 256 % block == 0, wide = from.dtype() == DType::bf16 && from.rank() == 2 &&
                                                from.stride(1) == 1 && from.stride(0) % 8 == 0 &&
                                                reinterpret_cast<uintptr_t>(from.data()) % 16 == 0;
  const int span = several ? 256 : block, spans = (job.inner + span - 1) / span, lanes_each = several ? block / 8 : 32;
  auto* const q = const_cast<int8_t*>(job.q);
  auto* const scales = const_cast<float*>(job.scales);
  auto* const sums = const_cast<int32_t*>(job.sums);
  each_thread(exec, from.rows() * spans * 32, [=, inner = job.inner, stride = job.stride] __device__(int64_t i) {
    const auto task = static_cast<uint32_t>(i / 32);
    const int r = static_cast<int>(task / static_cast<uint32_t>(spans)), lane = static_cast<int>(i % 32),
              first = static_cast<int>(task % static_cast<uint32_t>(spans)) * span, end = min(first + span, inner);
    const int64_t row = x.row(r);
    float highest = 0, v[8];
    for (int k = first + 8 * lane; k < end; k += 256) {
      read_eight(x, row + k, wide, v);
#pragma unroll
      for (int j = 0; j < 8; ++j) highest = fmaxf(highest, isfinite(v[j]) ? fabsf(v[j]) : INFINITY);
    }
    for (int lanes = lanes_each / 2; lanes > 0; lanes /= 2) {
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, lanes));
    }
    const bool finite = isfinite(highest), small = highest < kSmallestScaled;
    const float inverse = finite && !small ? 127 / highest : 0;
    for (int from_k = first; from_k < end; from_k += 256) {
      const int k = from_k + 8 * lane;
      int sum = 0;
      if (k < end) {
        if (span > 256) read_eight(x, row + k, wide, v);
        uint32_t words[2] = {};
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int one = finite ? static_cast<int>(nearbyintf(v[j] * inverse)) : 0;
          words[j / 4] |= (static_cast<uint32_t>(one) & 255U) << (8 * (j % 4));
          sum += one;
        }
        *reinterpret_cast<uint2*>(q + static_cast<int64_t>(r) * inner + k) = make_uint2(words[0], words[1]);
      }
      for (int lanes = part_lanes / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);
      if (k < end && lane % part_lanes == 0) sums[k / (8 * part_lanes) * stride + r] = sum;
    }
    if (lane % lanes_each == 0 && first + 8 * lane < end) {
      scales[(first + 8 * lane) / block * stride + r] = !finite ? NAN : small ? 0 : highest / 127;
    }
  });
}

BlockPiece piece_for(const LinearArgs& a, int64_t row_bytes) {
  const int64_t outputs = a.w.dim(-2);
  return {.w = reinterpret_cast<const uint8_t*>(a.w.data()),
          .matrix_bytes = row_bytes * (a.w.format().panels() ? (outputs + kPanelRows - 1) / kPanelRows : outputs),
          .outputs = static_cast<int>(outputs),
          .y = Plane(sums_of(a)),
          .bias = Plane(a.b),
          .residual = Plane(a.epilogue.residual)};
}

bool takes(const LinearArgs& a) {
  const auto narrow = [](const Tensor& t) {
    return !t.defined() || t.dtype() == DType::f32 || t.dtype() == DType::bf16;
  };
  return narrow(sums_of(a)) && narrow(a.b) && narrow(a.epilogue.residual);
}

}  // namespace

void product_blocks(const Exec& exec, std::span<const LinearArgs> all) {
  const LinearArgs& first = all.front();
  if (!std::all_of(all.begin(), all.end(), takes)) {
    for (const LinearArgs& a : all) product_blocks_in_double(exec, a, sums_of(a));
    return;
  }
  const int64_t inner = first.x.cols(), rows = first.x.rows();
  // Bytes of a row in scratch, with scales of 32 and sums of 16 columns.
  const int64_t each = inner + inner / 8 + inner / 4,
                at_once = std::min(exec.scratch.count() / (each + 64) / 4 * 4, kMostRows);
  for (int64_t from = 0; from < rows; from += at_once) {
    BlockJob job{.inner = static_cast<int>(inner), .first = from, .rows = std::min(at_once, rows - from)};
    job.stride = static_cast<int>((job.rows + 3) / 4 * 4);
    auto* scales = reinterpret_cast<float*>(exec.scratch.data());
    auto* sums = reinterpret_cast<int32_t*>(scales + job.stride * (inner / 32));
    job.scales = scales;
    job.sums = sums;
    job.q = reinterpret_cast<int8_t*>(sums + job.stride * (inner / 16));
    Rounding rounded;
    for (size_t i = 0, end; i < all.size(); i = end) {
      const Format format = all[i].w.format();
      const Rounding wanted = rounding_for(all[i]);
      if (wanted != rounded) round_to_bytes(exec, first.x.slice(0, from, job.rows), wanted, job);
      rounded = wanted;
      job.block = static_cast<int>(wanted.block);
      job.row_bytes = format.panels() ? PanelLayout(format, inner).bytes() : format.bytes_for(inner);
      job.groups = all[i].groups.defined() ? all[i].groups.as<int32_t>() : nullptr;
      job.count = 0;
      for (end = i; end < all.size() && all[end].w.format() == format; ++end) {
        job.pieces[job.count++] = piece_for(all[end], job.row_bytes);
      }
      const int64_t matrices = all[i].w.rank() == 3 ? all[i].w.dim(0) : 1;
      if (job.rows > std::max<int64_t>(kFewRows, 8 * matrices) ||
          !block_product_few(exec, job, matrices, format.block)) {
        block_product_many(exec, job, matrices, format.block);
      }
    }
  }
}

}  // namespace qkv::kernels::cuda
