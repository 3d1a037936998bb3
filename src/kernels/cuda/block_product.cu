// Products with weights in blocks, y = x w^T, as docs/kernels.md defines them and with the CPU's bits: x is rounded to
// int8, the integer tensor core adds a block exactly, and blocks are added in order, each operation rounded on its own:
//
//   y = y + float(I) * (d * s);   y = y + float(M) * (m * s)
//
// few rows of x    a block of threads per sixteen rows of weights; its warps take blocks of the row, their terms pass
//                  through shared memory and are added in order by a thread per output
// more rows        a warp per sixteen rows of weights and 32 rows of x, block by block
#include "kernels/cuda/block_formats.h"
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product_skinny_finish.h"

namespace qkv::kernels::cuda {
namespace {

using skinny::Plane;

constexpr int kFewRows = 8, kManyTiles = 4, kManyWarps = 4;

struct BlockJob {
  const uint8_t* w = nullptr;
  int64_t matrix_bytes = 0, row_bytes = 0;  // a row of panels: a panel
  int outputs = 0, inner = 0, block = 0;
  const int8_t* q = nullptr;
  const float* scales = nullptr;
  const int32_t* sums = nullptr;  // of q, per part
  int part = 32;
  int64_t first = 0, rows = 0;  // of x, in q
  const int32_t* groups = nullptr;
  Plane y, bias, residual;
};

// Which rows of x meet the matrix blockIdx.z, in q.
struct RowRange {
  int begin, end;
};
__device__ RowRange rows_of(const BlockJob& job, int64_t matrix) {
  if (job.groups == nullptr) return {0, static_cast<int>(job.rows)};
  const int64_t begin = job.groups[matrix] - job.first, end = job.groups[matrix + 1] - job.first;
  return {static_cast<int>(begin > 0 ? begin : 0), static_cast<int>(end < job.rows ? end : job.rows)};
}

// d += a b over 32 columns, or over 16.
__device__ void mma_bytes(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void mma_bytes(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(b));
}

// Rows g and g + 8 of sixteen rows of weights, g = lane / 4. words() gives a thread's share of 32 columns: of both rows
// the columns that `first` names, then of both those that `second` names.
template <class Q>
struct GgufRows : Q {
  static constexpr bool kPanels = false;
  const uint8_t* row[2];
  int t;

  __device__ GgufRows(const BlockJob& job, int64_t matrix, int panel, int lane) : t(lane % 4) {
    for (int i = 0; i < 2; ++i) {
      const int at = min(panel * 16 + lane / 4 + 8 * i, job.outputs - 1);
      row[i] = job.w + matrix * job.matrix_bytes + at * job.row_bytes;
    }
  }
  __device__ const uint8_t* block(int b, int i) const { return row[i] + static_cast<int64_t>(b) * Q::kBytes; }
  __device__ void words(int chunk, uint32_t (&a)[4]) const {
    constexpr int kEach = Q::kElements / 32;
    Q::words(block(chunk / kEach, 0), chunk % kEach, t, a[0], a[2]);
    Q::words(block(chunk / kEach, 1), chunk % kEach, t, a[1], a[3]);
  }
  __device__ void call_for(int chunk) const {  // into the second cache
    for (int i = 0; i < 2; ++i) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(block(chunk * 32 / Q::kElements, i) + t * 32));
    }
  }
  __device__ int first() const { return 4 * t; }
  __device__ int second() const { return 16 + 4 * t; }
  __device__ float scale_of(int b, int i) const { return Q::scale(block(b, i)); }
  __device__ float minimum_of(int b, int i) const { return Q::minimum(block(b, i)); }
  __device__ int sub_of(int b, int part, int i) const { return Q::sub(block(b, i), part); }
  __device__ int low_of(int b, int part, int i) const { return Q::low(block(b, i), part); }
};

template <bool kNibbles>
struct PanelRows : OneScale {
  static constexpr bool kPanels = true;
  const uint8_t* at;
  int t, group, group_bytes;

  __device__ PanelRows(const BlockJob& job, int64_t matrix, int panel, int lane)
      : at(job.w + matrix * job.matrix_bytes + panel * job.row_bytes + lane / 4 * 4),
        t(lane % 4),
        group(job.block),
        group_bytes((kNibbles ? 8 : 16) * job.block) {}
  __device__ const uint8_t* scales(int b) const {
    return at + static_cast<int64_t>(b / 2) * (kPanelLine + 2 * group_bytes);
  }
  __device__ void words(int chunk, uint32_t (&a)[4]) const {
    const int b = chunk * 32 / group, line = chunk * 32 % group / (kNibbles ? 8 : 4) + (kNibbles ? t : 2 * t);
    const uint8_t* from = scales(b) + kPanelLine + b % 2 * group_bytes + line * kPanelLine;
    const auto word = [&](int offset) { return __ldg(reinterpret_cast<const uint32_t*>(from + offset)); };
    for (int i = 0; i < 2; ++i) {
      const uint32_t one = word(32 * i);
      a[i] = kNibbles ? less(one & 0x0f0f0f0fU, 8) : one ^ 0x80808080U;
      a[2 + i] = kNibbles ? less(one >> 4 & 0x0f0f0f0fU, 8) : word(kPanelLine + 32 * i) ^ 0x80808080U;
    }
  }
  __device__ void call_for(int chunk) const {
    asm volatile(
        "prefetch.global.L2 [%0];" ::"l"(scales(chunk * 32 / group) + chunk * 32 % group * (kNibbles ? 8 : 16)));
  }
  __device__ int first() const { return 8 * t; }
  __device__ int second() const { return 8 * t + 4; }
  __device__ float scale_of(int b, int i) const {
    return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(scales(b) + 32 * i + 2 * (b % 2)));
  }
  __device__ float minimum_of(int, int) const { return 0; }
  __device__ int sub_of(int, int, int) const { return 1; }
  __device__ int low_of(int, int, int) const { return 1; }
};

template <class W>
__device__ int chunks_in_block(const BlockJob& job) {  // of 32 columns in a block
  return W::kPanels ? job.block / 32 : W::kElements / 32;
}

// I and M of a block for sixteen rows of weights and eight rows of x: number i is of row g + 8 (i / 2) and of x row
// 2 t + i % 2.
struct BlockSums {
  int total[4] = {}, lowest[4] = {};
};

// Columns of chunk `chunk`, the c-th of block b, for the eight rows of x from `m` on; `last` is the last there is.
template <class W>
__device__ void add_chunk(const BlockJob& job, const W& w, BlockSums& s, const uint32_t (&a)[4], int chunk, int b,
                          int c, int m, int last) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* x = job.q + static_cast<int64_t>(min(m + lane / 4, last)) * job.inner + chunk * 32;
  const auto word = [&](int at) { return *reinterpret_cast<const uint32_t*>(x + at); };
  const uint32_t b0 = word(w.first()), b1 = word(w.second());
  constexpr int kParts = W::kHalfParts ? 2 : 1;
  if constexpr (!W::kSubscales) {
    mma_bytes(s.total, a, b0, b1);
  } else {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      int sum[4] = {};
      if constexpr (W::kHalfParts) {
        mma_bytes(sum, a[2 * p], a[2 * p + 1], p == 0 ? b0 : b1);
      } else {
        mma_bytes(sum, a, b0, b1);
      }
      const int sub[2] = {w.sub_of(b, c * kParts + p, 0), w.sub_of(b, c * kParts + p, 1)};
#pragma unroll
      for (int i = 0; i < 4; ++i) s.total[i] += sum[i] * sub[i / 2];
    }
  }
  if constexpr (W::kMinima) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int low[2] = {w.low_of(b, c * kParts + p, 0), w.low_of(b, c * kParts + p, 1)};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = min(m + 2 * (lane % 4) + i % 2, last);
        s.lowest[i] += low[i / 2] * job.sums[row * (job.inner / job.part) + chunk * kParts + p];
      }
    }
  }
}

__device__ void put_output(const BlockJob& job, int64_t matrix, int m, int o, float sum) {
  const int n = static_cast<int>(job.first) + m;
  if (job.bias) sum += job.bias.get(static_cast<int>(matrix), o);
  job.y.set(n, o, job.residual ? job.residual.get(n, o) + sum : sum);
}

template <class W>
__global__ void __launch_bounds__(kThreads, 2) block_product_few(const __grid_constant__ BlockJob job) {
  // A slab is kEach chunks of 32 columns for every warp; a wide block is all a warp has of it.
  constexpr int kEach = W::kMinima && W::kElements == 32 ? 4 : 8, kStride = 20, kTerms = kFewRows * kStride;
  constexpr int kBlocks = kWarps * kEach * 32 / W::kElements;
  __shared__ float terms[kBlocks * kTerms], low_terms[W::kMinima ? kBlocks * kTerms : 1];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int panel = static_cast<int>(blockIdx.x), chunks = job.inner / 32, in_block = chunks_in_block<W>(job);
  const int64_t matrix = blockIdx.z;
  const W w(job, matrix, panel, lane);
  w.call_for(min(warp * kEach, chunks - 1));  // before the kernels ahead have ended
  let_next_start();
  wait_for_last();
  const RowRange range = rows_of(job, matrix);
  const int row = static_cast<int>(threadIdx.x) % 16, column = static_cast<int>(threadIdx.x) / 16;
  for (int m = range.begin; m < range.end; m += kFewRows) {
    float sum = 0;
    for (int first = 0; first < chunks; first += kWarps * kEach) {
      BlockSums s;
#pragma unroll kEach / 2
      for (int i = 0; i < kEach; ++i) {
        const int chunk = first + warp * kEach + i, b = chunk / in_block, c = chunk % in_block;
        if (chunk >= chunks) break;
        uint32_t a[4];
        w.words(chunk, a);
        if (c == 0) s = BlockSums();
        add_chunk(job, w, s, a, chunk, b, c, m, range.end - 1);
        if (c + 1 < in_block) continue;
        const int at = (warp * kEach + i) / in_block * kTerms;
        const float d[2] = {w.scale_of(b, 0), w.scale_of(b, 1)};
        const float low[2] = {w.minimum_of(b, 0), w.minimum_of(b, 1)};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int x = 2 * (lane % 4) + j % 2, to = at + x * kStride + lane / 4 + j / 2 * 8;
          const float scale = job.scales[static_cast<int64_t>(min(m + x, range.end - 1)) * (job.inner / job.block) + b];
          terms[to] = static_cast<float>(s.total[j]) * (d[j / 2] * scale);
          if (W::kMinima) low_terms[to] = static_cast<float>(s.lowest[j]) * (low[j / 2] * scale);
        }
      }
      __syncthreads();
      if (column < kFewRows) {
        const int blocks = min(chunks - first, kWarps * kEach) / in_block;
#pragma unroll 4
        for (int b = 0; b < blocks; ++b) {
          sum += terms[b * kTerms + column * kStride + row];
          if (W::kMinima) sum += low_terms[b * kTerms + column * kStride + row];
        }
      }
      __syncthreads();
    }
    const int o = panel * 16 + row;
    if (column < kFewRows && m + column < range.end && o < job.outputs) put_output(job, matrix, m + column, o, sum);
  }
}

template <class W>
__global__ void __launch_bounds__(32 * kManyWarps) block_product_many(const __grid_constant__ BlockJob job) {
  let_next_start();
  wait_for_last();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int panel = static_cast<int>(blockIdx.x) * kManyWarps + warp;
  const int64_t matrix = blockIdx.z;
  const RowRange range = rows_of(job, matrix);
  const int m = range.begin + static_cast<int>(blockIdx.y) * 8 * kManyTiles;
  if (m >= range.end || panel * 16 >= job.outputs) return;
  const W w(job, matrix, panel, lane);
  const int blocks = job.inner / job.block, in_block = chunks_in_block<W>(job);
  float sums[kManyTiles][4] = {};
  for (int b = 0; b < blocks; ++b) {
    BlockSums s[kManyTiles];
#pragma unroll 1
    for (int c = 0; c < in_block; ++c) {
      uint32_t a[4];
      w.words(b * in_block + c, a);
#pragma unroll
      for (int tile = 0; tile < kManyTiles; ++tile) {
        add_chunk(job, w, s[tile], a, b * in_block + c, b, c, m + 8 * tile, range.end - 1);
      }
    }
    const float d[2] = {w.scale_of(b, 0), w.scale_of(b, 1)}, low[2] = {w.minimum_of(b, 0), w.minimum_of(b, 1)};
#pragma unroll
    for (int tile = 0; tile < kManyTiles; ++tile) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int x = min(m + 8 * tile + 2 * (lane % 4) + j % 2, range.end - 1);
        const float scale = job.scales[static_cast<int64_t>(x) * blocks + b];
        sums[tile][j] += static_cast<float>(s[tile].total[j]) * (d[j / 2] * scale);
        if (W::kMinima) sums[tile][j] += static_cast<float>(s[tile].lowest[j]) * (low[j / 2] * scale);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kManyTiles; ++tile) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int x = m + 8 * tile + 2 * (lane % 4) + j % 2, o = panel * 16 + lane / 4 + j / 2 * 8;
      if (x < range.end && o < job.outputs) put_output(job, matrix, x, o, sums[tile][j]);
    }
  }
}

// Rows of x as bytes, a warp per block: s = max |x| / 127, q = round to even (x (127 / max)).
void round_to_bytes(const Exec& exec, const Tensor& from, int64_t block, int part, int8_t* q, float* scales,
                    int32_t* sums) {
  const View x(from);
  const int64_t inner = from.cols(), blocks = inner / block;
  each_thread(exec, from.rows() * blocks * 32, [=] __device__(int64_t i) {
    const int64_t r = i / 32 / blocks, b = i / 32 % blocks, lane = i % 32, first = b * block;
    float highest = 0;
    bool finite = true;
    for (int64_t k = first + lane; k < first + block; k += 32) {
      const float v = fabsf(x.get<float>(x.row(r) + k));
      highest = fmaxf(highest, v);
      finite = finite && isfinite(v);
    }
    highest = warp_max(highest);
    finite = __all_sync(0xffffffffU, finite);
    const bool small = highest < kSmallestScaled;
    const float inverse = finite && !small ? 127 / highest : 0;
    for (int64_t k = first + lane; k < first + block; k += 32) {
      const int v = finite ? static_cast<int>(nearbyintf(x.get<float>(x.row(r) + k) * inverse)) : 0;
      q[r * inner + k] = static_cast<int8_t>(v);
      int sum = v;
      for (int lanes = part / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);
      if (lane % part == 0) sums[(r * inner + k) / part] = sum;
    }
    if (lane == 0) scales[r * blocks + b] = !finite ? NAN : small ? 0 : highest / 127;
  });
}

template <class W>
void run(const Exec& exec, const BlockJob& job, int64_t matrices) {
  const int64_t panels = (job.outputs + 15) / 16;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.stream = stream_of(exec);
  config.attrs = &early;
  config.numAttrs = recording() ? 1 : 0;
  const auto z = static_cast<unsigned>(matrices);
  if (job.rows <= kFewRows && job.block <= 256) {
    config.gridDim = dim3(static_cast<unsigned>(panels), 1, z);
    config.blockDim = dim3(kThreads);
    cudaLaunchKernelEx(&config, block_product_few<W>, job);
  } else {
    config.gridDim = dim3(static_cast<unsigned>((panels + kManyWarps - 1) / kManyWarps),
                          static_cast<unsigned>((job.rows + 8 * kManyTiles - 1) / (8 * kManyTiles)), z);
    config.blockDim = dim3(32 * kManyWarps);
    cudaLaunchKernelEx(&config, block_product_many<W>, job);
  }
  note_launch();
}

void run(const Exec& exec, const BlockJob& job, int64_t matrices, Block block) {
  switch (block) {
    case Block::q8:
      return run<PanelRows<false>>(exec, job, matrices);
    case Block::q4:
      return run<PanelRows<true>>(exec, job, matrices);
    case Block::q8_0:
      return run<GgufRows<Q8_0>>(exec, job, matrices);
    case Block::q4_0:
      return run<GgufRows<Q4_0>>(exec, job, matrices);
    case Block::q4_1:
      return run<GgufRows<Q4_1>>(exec, job, matrices);
    case Block::q5_0:
      return run<GgufRows<Q5_0>>(exec, job, matrices);
    case Block::q5_1:
      return run<GgufRows<Q5_1>>(exec, job, matrices);
    case Block::q2_k:
      return run<GgufRows<Q2K>>(exec, job, matrices);
    case Block::q3_k:
      return run<GgufRows<Q3K>>(exec, job, matrices);
    case Block::q4_k:
      return run<GgufRows<Q4K>>(exec, job, matrices);
    case Block::q5_k:
      return run<GgufRows<Q5K>>(exec, job, matrices);
    case Block::q6_k:
      return run<GgufRows<Q6K>>(exec, job, matrices);
    case Block::mxfp4:
      return run<GgufRows<Mxfp4>>(exec, job, matrices);
    case Block::none:
      return;
  }
}

}  // namespace

void product_blocks(const Exec& exec, const LinearArgs& a, const Tensor& y) {
  const auto narrow = [](const Tensor& t) {
    return !t.defined() || t.dtype() == DType::f32 || t.dtype() == DType::bf16;
  };
  if (!narrow(y) || !narrow(a.b) || !narrow(a.epilogue.residual)) return product_blocks_in_double(exec, a, y);
  const Format format = a.w.format();
  const int64_t inner = a.x.cols(), outputs = a.w.dim(-2), matrices = a.w.rank() == 3 ? a.w.dim(0) : 1;
  const int64_t block = !format.panels() ? format.block_elements() : format.group > 0 ? format.group : inner;
  const bool halves = format.block == Block::q2_k || format.block == Block::q3_k || format.block == Block::q6_k;
  BlockJob job{.w = reinterpret_cast<const uint8_t*>(a.w.data()),
               .outputs = static_cast<int>(outputs),
               .inner = static_cast<int>(inner),
               .block = static_cast<int>(block),
               .part = halves ? 16 : 32,
               .groups = a.groups.defined() ? a.groups.as<int32_t>() : nullptr,
               .y = Plane(y),
               .bias = Plane(a.b),
               .residual = Plane(a.epilogue.residual)};
  job.row_bytes = format.panels() ? PanelLayout(format, inner).bytes() : format.bytes_for(inner);
  job.matrix_bytes = job.row_bytes * (format.panels() ? (outputs + kPanelRows - 1) / kPanelRows : outputs);
  const int64_t each = inner + 4 * (inner / block) + 4 * (inner / job.part);  // bytes of a row in scratch
  const int64_t at_once = exec.scratch.count() / (each + 64);
  for (int64_t first = 0; first < y.rows(); first += at_once) {
    const int64_t rows = std::min(at_once, y.rows() - first);
    auto* scales = reinterpret_cast<float*>(exec.scratch.data());
    auto* sums = reinterpret_cast<int32_t*>(scales + rows * (inner / block));
    auto* q = reinterpret_cast<int8_t*>(sums + rows * (inner / job.part));
    round_to_bytes(exec, a.x.slice(0, first, rows), block, job.part, q, scales, sums);
    job.q = q;
    job.scales = scales;
    job.sums = sums;
    job.first = first;
    job.rows = rows;
    run(exec, job, matrices, format.block);
  }
}

}  // namespace qkv::kernels::cuda
