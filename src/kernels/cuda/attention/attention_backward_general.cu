// dq, dk and dv of any width, dtype and option: a block has 32 rows or 32 keys of one head and meets the other side in
// blocks of 32. First p and ds of the pairs, then their products, through shared memory.
//
// Orders: s and dp are chains of fused multiply-adds over columns; dq adds keys ascending; dk and dv add segments,
// query heads and rows in order. What a row does not see is left out.
#include "kernels/cuda/attention/attention_gradient.h"
#include "kernels/cuda/attention/attention_tiles.h"
#include "kernels/cuda/ptx.h"
#include "kernels/cuda/stream_memory.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kSide = 32, kEach = kSide / kWarps;  // rows or keys a warp has
constexpr int kOut = 128, kPerLane = kOut / 32;    // columns of a gradient at a time; the next ones are another block's
constexpr int kStride = kSide + 4;                 // keeps four numbers together and spreads the banks

template <class R>
struct alignas(4 * sizeof(R) < 16 ? 4 * sizeof(R) : 16) Four {
  R v[kEach];
};
static_assert(kEach == 4);

template <class R>
struct Shared {
  R rows[kSide * (kSide + 1)];                                    // 32 columns of each row
  Four<R> keys[kSide * kStride / 4];                              // 32 columns of each key, [column][key]
  Four<R> carried[kSide * kStride / 4], ds[kSide * kStride / 4];  // [row][key] for dk and dv, [key][row] for dq
  uint32_t seen[kSide * kStride / 4];                             // bytes, as ds
  R columns[kSide * kOut];                                        // of keys for dq, of rows for dk and dv
};

struct Lines {  // rows of q or dz, or keys of k or v: one head of each
  View view;
  int64_t first, head;
  int count;
  template <class R>
  __device__ R get(int i, int64_t column) const {
    return i < count && column < view.dims[2] ? view.get<R>(view.at(first + i, head, column)) : R{0};
  }
};

// sums[i] = row `lane` . key 4 warp + i
template <class R>
__device__ void multiply(Shared<R>& sh, const Lines& rows, const Lines& keys, R (&sums)[kEach]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t width = rows.view.dims[2];
  for (R& s : sums) s = 0;
  for (int64_t from = 0; from < width; from += kSide) {
    __syncthreads();
#pragma unroll 1
    for (int i = warp; i < kSide; i += kWarps) {
      sh.rows[i * (kSide + 1) + lane] = rows.get<R>(i, from + lane);
      sh.keys[(lane * kStride + i) / 4].v[i % 4] = keys.get<R>(i, from + lane);
    }
    __syncthreads();
    const int columns = static_cast<int>(width - from < kSide ? width - from : kSide);
    for (int c = 0; c < columns; ++c) {
      const R x = sh.rows[lane * (kSide + 1) + c];
      const Four<R> y = sh.keys[c * kStride / 4 + warp];
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[i] = fma(x, y.v[i], sums[i]);
    }
  }
}

// p keep and ds of 32 rows and 32 keys into shared memory; lane: the row, in the segment `row` is of.
template <class R, bool kByKey>
__device__ void find_pairs(Shared<R>& sh, const BackwardView& a, const QueryRow<R>& row, bool there, int64_t head,
                           const Lines& q, const Lines& k, int64_t at) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto place = [&](int i) {
    return kByKey ? (warp * kEach + i) * kStride + lane : lane * kStride + warp * kEach + i;
  };
  auto* carried = reinterpret_cast<R*>(sh.carried);
  auto* ds = reinterpret_cast<R*>(sh.ds);
  auto* seen = reinterpret_cast<uint8_t*>(sh.seen);
  R sums[kEach];
  multiply<R>(sh, q, k, sums);
  for (int i = 0; i < kEach; ++i) ds[place(i)] = sums[i];
  multiply<R>(sh, {a.dz, q.first, q.head, q.count}, {a.in.v, k.first, k.head, k.count}, sums);
  for (int i = 0; i < kEach; ++i) carried[place(i)] = sums[i];
#pragma unroll 1
  for (int i = 0; i < kEach; ++i) {  // each thread its own
    const int key = warp * kEach + i, to = place(i);
    const bool sees = there && key < k.count && row.sees(at + key);
    const PairGradient<R> pair = sees ? pair_gradient(a, row, head, at + key, ds[to], carried[to]) : PairGradient<R>{};
    ds[to] = pair.ds;
    carried[to] = pair.carried;
    seen[to] = sees ? 1 : 0;
  }
  __syncthreads();
}

// sums[i][e] += pairs of line i with the other side, times that side's columns
template <class R>
__device__ void add_columns(Shared<R>& sh, const Four<R>* pairs, const Lines& other, int64_t from,
                            R (&sums)[kEach][kPerLane]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
#pragma unroll 1
  for (int i = warp; i < other.count; i += kWarps) {
#pragma unroll 1
    for (int e = 0; e < kPerLane; ++e) sh.columns[i * kOut + lane + 32 * e] = other.get<R>(i, from + lane + 32 * e);
  }
  __syncthreads();
  for (int k = 0; k < other.count; ++k) {
    const Four<R> by = pairs[k * kStride / 4 + warp];
    const uint32_t seen = sh.seen[k * kStride / 4 + warp];
    R x[kPerLane];
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) x[e] = sh.columns[k * kOut + lane + 32 * e];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if ((seen >> (8 * i) & 1) == 0) continue;
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) sums[i][e] = fma(by.v[i], x[e], sums[i][e]);
    }
  }
}

template <class R>
__device__ void put(const GradView& grad, int64_t first, int64_t head, int count, int64_t from, R by,
                    const R (&sums)[kEach][kPerLane]) {
  if (!grad) return;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int line = static_cast<int>(threadIdx.x) / 32 * kEach + i;
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      const int64_t column = from + threadIdx.x % 32 + 32 * e;
      if (line >= count || column >= grad.view.dims[2]) continue;
      grad.put(grad.view.at(first + line, head, column), by * sums[i][e]);
    }
  }
}

// Half a tile of rows, one head, 128 columns.
template <class R>
__global__ void __launch_bounds__(kThreads)
    dq_general(const __grid_constant__ BackwardView a, const __grid_constant__ GradView dq, const TilePlan plan,
               const Sight sight) {
  auto& sh = *reinterpret_cast<Shared<R>*>(dynamic_shared());
  const int index = static_cast<int>(blockIdx.x / 2), half = blockIdx.x % 2 * kSide;
  if (index >= plan.counts[0]) return;
  const RowTile tile = plan.row_tiles[index];
  const int rows = min(tile.rows - half, kSide), lane = threadIdx.x % 32;
  if (rows <= 0) return;
  const int64_t head = blockIdx.y, from = int64_t{blockIdx.z} * kOut, kv_head = a.in.kv_map.id(head);
  const int64_t position = int64_t{tile.position} + tile.at + half;
  const QueryRow<R> row(a.in, tile.segment, tile.at + half + min(lane, rows - 1), head);
  const int begin = sight.keys_of(position, tile.keys).begin, end = sight.keys_of(position + rows - 1, tile.keys).end;
  R sums[kEach][kPerLane] = {};
  for (int at = begin; at < end; at += kSide) {
    const int keys = min(kSide, end - at);
    const Lines k{a.in.k, tile.first_key + at, kv_head, keys};
    find_pairs<R, true>(sh, a, row, lane < rows, head, {a.in.q, tile.first + half, head, rows}, k, at);
    add_columns<R>(sh, sh.ds, k, from, sums);
  }
  put<R>(dq, tile.first + half, head, rows, from, static_cast<R>(a.in.scale), sums);
}

// Half a tile of keys, one key head, 128 columns.
template <class R>
__global__ void __launch_bounds__(kThreads)
    dk_dv_general(const __grid_constant__ BackwardView a, const __grid_constant__ GradView dk,
                  const __grid_constant__ GradView dv, const TilePlan plan, const Sight sight) {
  auto& sh = *reinterpret_cast<Shared<R>*>(dynamic_shared());
  const int index = static_cast<int>(blockIdx.x / 2), half = blockIdx.x % 2 * kSide;
  if (index >= plan.counts[1]) return;
  const KeyTile tile = plan.key_tiles[index];
  const int all_keys = min(tile.keys - half, kSide), lane = threadIdx.x % 32;
  if (all_keys <= 0) return;
  const int64_t kv_head = blockIdx.y, from = int64_t{blockIdx.z} * kOut;
  R sum_k[kEach][kPerLane] = {}, sum_v[kEach][kPerLane] = {};
  for (int n = 0; n < tile.segments; ++n) {
    const Asking s = asking(a.in.segments, plan, tile, n);
    const int at = s.at + half, first = max(at, 0), last = min(at + all_keys, s.keys) - 1;
    if (first > last) continue;
    const int begin = sight.rows_of(first, s.position, s.rows).begin, end = sight.rows_of(last, s.position, s.rows).end;
    const HeadGroup group = plan.groups[kv_head];
    for (int i = 0; i < group.count; ++i) {
      const int64_t head = plan.head(group, i);
      for (int r = begin; r < end; r += kSide) {
        const int rows = min(kSide, end - r);
        const QueryRow<R> row(a.in, s.segment, r + min(lane, rows - 1), head);
        const Lines q{a.in.q, s.first_row + r, head, rows};
        find_pairs<R, false>(sh, a, row, lane < rows, head, q, {a.in.k, tile.first + half, kv_head, all_keys}, at);
        if (dk) add_columns<R>(sh, sh.ds, q, from, sum_k);
        if (dv) add_columns<R>(sh, sh.carried, {a.dz, q.first, head, rows}, from, sum_v);
      }
    }
  }
  put<R>(dk, tile.first + half, kv_head, all_keys, from, static_cast<R>(a.in.scale), sum_k);
  put<R>(dv, tile.first + half, kv_head, all_keys, from, R{1}, sum_v);
}

template <class R>
void run(const Exec& exec, const AttentionBackwardArgs& args) {
  const AttentionInput& in = args.in;
  const BackwardView a(args);
  const GradView dq(args.dq), dk(args.dk), dv(args.dv);
  const Sight sight{.causal = in.causal, .window = in.window, .chunk = in.chunk};
  StreamMemory memory(exec);
  std::byte* const place = memory.room(exec, place_plan(exec.scratch.data(), in, kBlock).bytes);
  if (place == nullptr) return;
  const TilePlan plan = place_plan(place, in, kBlock);
  make_plan(exec, in, {.dq = dq, .dk = dk, .dv = dv}, plan);
  constexpr auto kBytes = static_cast<int>(sizeof(Shared<R>));
  static const cudaError_t prepared = [] {
    const cudaError_t code = cudaFuncSetAttribute(dq_general<R>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    const cudaError_t other =
        cudaFuncSetAttribute(dk_dv_general<R>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    return code != cudaSuccess ? code : other;
  }();
  static_cast<void>(prepared);  // else the launch fails, and says so
  const auto grid = [](int tiles, int64_t heads, int64_t columns) {
    return dim3(2 * tiles, static_cast<unsigned>(heads), static_cast<unsigned>((columns + kOut - 1) / kOut));
  };
  const cudaStream_t stream = stream_of(exec);
  if (args.dq && plan.most_row_tiles > 0) {
    const dim3 blocks = grid(plan.most_row_tiles, in.q.dim(1), in.q.dim(2));
    launch_after(stream, dq_general<R>, blocks, kThreads, kBytes, a, dq, plan, sight);
  }
  if ((args.dk || args.dv) && plan.most_key_tiles > 0) {
    const dim3 blocks = grid(plan.most_key_tiles, in.k.dim(1), std::max(in.k.dim(2), in.v.dim(2)));
    launch_after(stream, dk_dv_general<R>, blocks, kThreads, kBytes, a, dk, dv, plan, sight);
  }
}

}  // namespace

void find_dq_dk_dv(const Exec& exec, const AttentionBackwardArgs& a) {
  in_real(a.lse, [&](auto r) { run<decltype(r)>(exec, a); });
}

}  // namespace qkv::kernels::cuda
