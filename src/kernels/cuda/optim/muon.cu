// Muon for all matrices of a model at once; the formulas are in ops/optim.cpp. X is the wide one of a matrix and its
// transpose. A step of Newton-Schulz is three launches over tiles of 64 x 64 outputs of every matrix.
//
// Orders follow from a matrix's shape alone: products are chains of fused multiply-adds, k ascending, as product_fma;
// squares are added as by sum_squares. X X^T and its square are symmetric to the bit, so only tiles on and above the
// diagonal are computed, and written twice.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/optim/tensor_table.h"
#include "kernels/cuda/total.h"

namespace qkv::kernels::cuda {
namespace {

struct Matrix {
  float *w, *buffer;
  const float* g;
  __nv_bfloat16* copy;      // of w, or absent
  float *x, *next;          // wide; next is u before the first step, shaped like w
  float *gram, *mixed;      // X X^T, and b X X^T + c (X X^T)^2
  double* squares;          // of u, by block of add_momentum
  int rows, columns, each;  // of w; numbers a block of add_momentum has
  float momentum, factor, shrink, step;

  __host__ __device__ bool tall() const { return rows > columns; }
  __host__ __device__ int low() const { return rows < columns ? rows : columns; }
  __host__ __device__ int wide() const { return rows < columns ? columns : rows; }
  __host__ __device__ int64_t count() const { return int64_t{rows} * columns; }
  __host__ __device__ int64_t blocks() const { return (count() + each - 1) / each; }
};
using Table = TensorTable<Matrix>;

// buffer = momentum buffer + g,  u = g + momentum buffer, and the squares of u.
__global__ void __launch_bounds__(kThreads) add_momentum(const __grid_constant__ Table table) {
  const int t = table.find(blockIdx.x);
  const Matrix& m = table.of[t];
  const int64_t block = blockIdx.x - table.first[t], begin = block * m.each, end = min(begin + m.each, m.count());
  double sum = 0;
  for (int64_t i = begin + 4 * threadIdx.x; i < end; i += TotalParts::kPiece) {
    float4 b = *reinterpret_cast<const float4*>(m.buffer + i), u = *reinterpret_cast<const float4*>(m.g + i);
    const auto add = [&](float& buffer, float& of) {
      const float g = m.factor * of;
      buffer = m.momentum * buffer + g;
      of = g + m.momentum * buffer;
      sum += static_cast<double>(of) * static_cast<double>(of);
    };
    add(b.x, u.x);
    add(b.y, u.y);
    add(b.z, u.z);
    add(b.w, u.w);
    *reinterpret_cast<float4*>(m.buffer + i) = b;
    *reinterpret_cast<float4*>(m.next + i) = u;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) m.squares[block] = sum;
}

// 32 x 32 numbers of w's shape, four a thread.
constexpr int kSquare = 32;
__host__ __device__ int64_t squares_of(const Matrix& m) {
  return int64_t{(m.rows + kSquare - 1) / kSquare} * ((m.columns + kSquare - 1) / kSquare);
}
struct Square {
  int row, column;

  __device__ Square(const Matrix& m, int block) {
    const int across = (m.columns + kSquare - 1) / kSquare;
    row = block / across * kSquare;
    column = block % across * kSquare;
  }
  // f(row, column) with neighbouring threads in one row; or, turned, in one column.
  template <class F>
  __device__ void each(const Matrix& m, bool turned, const F& f) const {
    const int near = static_cast<int>(threadIdx.x) % kSquare, far = static_cast<int>(threadIdx.x) / kSquare;
#pragma unroll
    for (int i = 0; i < kSquare; i += kThreads / kSquare) {
      const int r = turned ? near : far + i, c = turned ? far + i : near;
      if (row + r < m.rows && column + c < m.columns) f(r, c);
    }
  }
};

// X = u / |u|
__global__ void __launch_bounds__(kThreads) normalise(const __grid_constant__ Table table) {
  __shared__ float numbers[kSquare][kSquare + 1];
  const int t = table.find(blockIdx.x);
  const Matrix& m = table.of[t];
  const Square at(m, static_cast<int>(blockIdx.x - table.first[t]));
  const auto by = static_cast<float>(1 / (sqrt(total_of_blocks(m.squares, m.blocks())) + 1e-7));
  at.each(m, false,
          [&](int r, int c) { numbers[r][c] = by * m.next[int64_t{at.row + r} * m.columns + at.column + c]; });
  __syncthreads();
  at.each(m, m.tall(), [&](int r, int c) {
    const int row = at.row + r, column = at.column + c;
    m.x[m.tall() ? int64_t{column} * m.rows + row : int64_t{row} * m.columns + column] = numbers[r][c];
  });
}

// w = shrink w + step X, and the copy of w.
__global__ void __launch_bounds__(kThreads) move_weights(const __grid_constant__ Table table) {
  __shared__ float numbers[kSquare][kSquare + 1];
  const int t = table.find(blockIdx.x);
  const Matrix& m = table.of[t];
  const Square at(m, static_cast<int>(blockIdx.x - table.first[t]));
  at.each(m, m.tall(), [&](int r, int c) {
    const int row = at.row + r, column = at.column + c;
    numbers[r][c] = m.x[m.tall() ? int64_t{column} * m.rows + row : int64_t{row} * m.columns + column];
  });
  __syncthreads();
  at.each(m, false, [&](int r, int c) {
    const int64_t i = int64_t{at.row + r} * m.columns + at.column + c;
    const float w = m.shrink * m.w[i] + m.step * numbers[r][c];
    m.w[i] = w;
    if (m.copy != nullptr) m.copy[i] = __float2bfloat16_rn(w);
  });
}

// 64 x 64 outputs a block, 8 x 4 a thread, the next 16 of k loaded while these are multiplied.
constexpr int kTile = 64, kInner = 16, kRow = kTile + 4, kProductThreads = 128;

// 64 x 16 numbers of an operand: [row][k], or, turned, [k][row]. Zeros outside; sides are multiples of four.
template <bool kTurned>
struct Chunk {
  float4 of[2];

  static __device__ int2 place(int h) {  // row and k
    const int i = static_cast<int>(threadIdx.x) + h * kProductThreads;
    return kTurned ? make_int2(i % (kTile / 4) * 4, i / (kTile / 4))
                   : make_int2(i / (kInner / 4), i % (kInner / 4) * 4);
  }
  __device__ void load(const float* from, int stride, int first_row, int rows, int first_k, int inner) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int2 at = place(h);
      const int row = first_row + at.x, k = first_k + at.y;
      const float* p = from + (kTurned ? int64_t{k} * stride + row : int64_t{row} * stride + k);
      of[h] = row < rows && k < inner ? *reinterpret_cast<const float4*>(p) : float4{};
    }
  }
  __device__ void store(float (&to)[kInner][kRow]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int2 at = place(h);
      if (kTurned) {
        *reinterpret_cast<float4*>(&to[at.y][at.x]) = of[h];
      } else {
        to[at.y][at.x] = of[h].x;
        to[at.y + 1][at.x] = of[h].y;
        to[at.y + 2][at.x] = of[h].z;
        to[at.y + 3][at.x] = of[h].w;
      }
    }
  }
};

// gram = X X^T;  mixed = b gram + c gram gram^T;  next = a X + mixed X
enum class Product { gram, mixed, next };

int64_t tiles_of(const Matrix& m, Product which) {
  const int64_t down = (m.low() + kTile - 1) / kTile, across = (m.wide() + kTile - 1) / kTile;
  return which == Product::next ? down * across : down * (down + 1) / 2;
}

template <Product kWhich>
__global__ void __launch_bounds__(kProductThreads) multiply(const __grid_constant__ Table table) {
  constexpr bool kNext = kWhich == Product::next;
  __shared__ __align__(16) float as[2][kInner][kRow], bs[2][kInner][kRow];
  const int t = table.find(blockIdx.x);
  const Matrix& m = table.of[t];
  const int block = static_cast<int>(blockIdx.x - table.first[t]), low = m.low(), wide = m.wide();
  const int rows = low, columns = kNext ? wide : low, inner = kWhich == Product::gram ? wide : low;
  const float *left = kNext ? m.mixed : kWhich == Product::gram ? m.x : m.gram, *right = kNext ? m.x : left;
  int down, across;  // of tiles
  if (kNext) {
    const int in_row = (columns + kTile - 1) / kTile;
    down = block / in_row;
    across = block % in_row;
  } else {  // column after column, above the diagonal
    across = 0;
    for (int before = block; before > across; ++across) before -= across + 1;
    down = block - across * (across + 1) / 2;
  }
  const int m0 = down * kTile, n0 = across * kTile, warp = static_cast<int>(threadIdx.x) / 32,
            lane = static_cast<int>(threadIdx.x) % 32;
  const int tm = (warp / 2 * 4 + lane / 8) * 4, tn = (warp % 2 * 8 + lane % 8) * 4;  // rows tm and 32 + tm, columns tn
  Chunk<false> a;
  Chunk<kNext> b;
  const auto load = [&](int k) {
    a.load(left, inner, m0, rows, k, inner);
    b.load(right, kNext ? columns : inner, n0, columns, k, inner);
  };
  load(0);
  float sums[8][4] = {};
  for (int k0 = 0, now = 0; k0 < inner; k0 += kInner, now ^= 1) {
    a.store(as[now]);
    b.store(bs[now]);
    __syncthreads();
    load(k0 + kInner);
#pragma unroll
    for (int k = 0; k < kInner; ++k) {
      float x[8], y[4];
      *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(&as[now][k][tm]);
      *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<const float4*>(&as[now][k][tm + 32]);
      *reinterpret_cast<float4*>(y) = *reinterpret_cast<const float4*>(&bs[now][k][tn]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
      }
    }
  }
  float* out = kNext ? m.next : kWhich == Product::gram ? m.gram : m.mixed;
  const float* beside = kNext ? m.x : m.gram;
  constexpr auto kOnBeside = static_cast<float>(kNext ? NewtonSchulz::a : NewtonSchulz::b),
                 kOnSum = static_cast<float>(kNext ? 1 : NewtonSchulz::c);
  const int n = n0 + tn;
  if (n >= columns) return;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = m0 + tm + i / 4 * 32 + i % 4;
    if (row >= rows) continue;
    float4& four = *reinterpret_cast<float4*>(sums[i]);
    const int64_t at = int64_t{row} * columns + n;
    if (kWhich != Product::gram) {
      const float4 x = *reinterpret_cast<const float4*>(beside + at);
      four = {kOnBeside * x.x + kOnSum * four.x, kOnBeside * x.y + kOnSum * four.y, kOnBeside * x.z + kOnSum * four.z,
              kOnBeside * x.w + kOnSum * four.w};
    }
    *reinterpret_cast<float4*>(out + at) = four;
  }
  if constexpr (!kNext) {
    if (down == across) return;
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const int row = m0 + tm + 8 * i;
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        *reinterpret_cast<float4*>(out + int64_t{n + j} * low + row) = {sums[i][j], sums[i + 1][j], sums[i + 2][j],
                                                                        sums[i + 3][j]};
      }
    }
  }
}

// Matrices whose working memory lies in scratch together.
struct Group {
  Matrix of[kMostTensors];
  int count = 0;

  template <class Blocks>
  Table table(const Blocks& blocks) const {
    Table made;
    for (int i = 0; i < count; ++i) made.add(of[i], blocks(of[i]));
    return made;
  }
  void run(const Exec& exec) {
    if (count == 0) return;
    std::sort(of, of + count, [](const Matrix& a, const Matrix& b) { return a.count() > b.count(); });  // longest first
    const auto launch_over = [&](void (*kernel)(Table), int threads, const auto& blocks) {
      const Table made = table(blocks);
      launch_after(stream_of(exec), kernel, made.first[made.count], threads, 0, made);
    };
    const auto product = [&](void (*kernel)(Table), Product which) {
      launch_over(kernel, kProductThreads, [&](const Matrix& m) { return tiles_of(m, which); });
    };
    launch_over(add_momentum, kThreads, [](const Matrix& m) { return m.blocks(); });
    launch_over(normalise, kThreads, squares_of);
    for (int step = 0; step < NewtonSchulz::kSteps; ++step) {
      product(multiply<Product::gram>, Product::gram);
      product(multiply<Product::mixed>, Product::mixed);
      product(multiply<Product::next>, Product::next);
      for (int i = 0; i < count; ++i) std::swap(of[i].x, of[i].next);
    }
    launch_over(move_weights, kThreads, squares_of);
    count = 0;
  }
};

bool takes(const MuonArgs& a) {
  const Shape& shape = a.w.shape();
  return shape[-1] % 4 == 0 && shape[-2] % 4 == 0 && shape[-1] < INT32_MAX / 2 && shape[-2] < INT32_MAX / 2 &&
         in_fours<float>(a.w) && in_fours<float>(a.g) && in_fours<float>(a.buffer) &&
         (!a.copy.defined() || in_fours<__nv_bfloat16>(a.copy));
}

}  // namespace

void muon_set(const Exec& exec, std::span<MuonArgs> all) noexcept {
  constexpr int64_t kMostSquares = TotalParts::kMost;
  auto* squares = reinterpret_cast<double*>(exec.scratch.data());
  auto* const first = reinterpret_cast<float*>(squares + kMostTensors * kMostSquares);
  auto* const end =
      first + (exec.scratch.count() - kMostTensors * kMostSquares * int64_t{sizeof(double)}) / int64_t{sizeof(float)};
  float* at = first;
  Group group;
  for (MuonArgs& a : all) {
    if (!takes(a)) continue;
    const int64_t rows = a.w.shape()[-2], columns = a.w.shape()[-1], count = rows * columns,
                  low = std::min(rows, columns), need = 2 * (count + low * low);
    if (need > end - first) continue;
    for (int64_t i = 0; i < a.w.count(); i += count) {
      if (need > end - at || group.count == kMostTensors) {
        group.run(exec);
        at = first;
      }
      Matrix& m = group.of[group.count];
      m = {.w = a.w.as<float>() + i,
           .buffer = a.buffer.as<float>() + i,
           .g = a.g.as<float>() + i,
           .copy = a.copy.defined() ? a.copy.as<__nv_bfloat16>() + i : nullptr,
           .x = at,
           .next = at + count,
           .gram = at + 2 * count,
           .mixed = at + 2 * count + low * low,
           .squares = squares + group.count * kMostSquares,
           .rows = static_cast<int>(rows),
           .columns = static_cast<int>(columns),
           .each = static_cast<int>(TotalParts(count).each),
           .momentum = static_cast<float>(a.momentum),
           .factor = static_cast<float>(a.grad_factor),
           .shrink = static_cast<float>(a.shrink),
           .step = static_cast<float>(a.step)};
      ++group.count;
      at += need;
    }
    a.done = true;
  }
  group.run(exec);
}

}  // namespace qkv::kernels::cuda
