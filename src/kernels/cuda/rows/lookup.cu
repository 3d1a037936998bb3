// Rows of a table by index: embeddings, and the scatter of keys and values into pages.
#include <cmath>
#include <utility>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/packed.h"
#include "kernels/cuda/products/blocks.h"
#include "kernels/cuda/rows/sort.h"
#include "kernels/cuda/stream_memory.h"

namespace qkv::kernels::cuda {
namespace {

template <class A, int N>
void embedding_in(const Exec& exec, const EmbeddingArgs& a) {
  using R = typename A::Real;
  const A y(a.y), table(a.table);
  const int32_t* ids = a.ids.as<int32_t>();
  const R factor = static_cast<R>(a.factor);
  const bool add = a.add;
  each_pack<N>(exec, a.y.rows(), a.y.cols(), [=] __device__(int64_t r, int64_t c) {
    R v[N];
    table.load(ids[r], c, v);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] *= factor;
    y.put(r, c, v, add);
  });
}

// A table in blocks.
template <class R>
void embedding_blocks(const Exec& exec, const EmbeddingArgs& a) {
  const View y(a.y), ids(a.ids);
  const Blocks table(a.table);
  const R factor = static_cast<R>(a.factor);
  const bool add = a.add;
  const int64_t width = a.y.cols();
  each_thread(exec, a.y.count(), [=] __device__(int64_t i) {
    const int64_t r = i / width, c = i % width;
    y.put(y.row(r) + c, factor * table.get<R>(ids.id(r), c), add);
  });
}

// The rows of one id, in order, in pieces of 64; then the pieces in order. Ids with one piece go to the table directly,
// the others through scratch. A piece is worked on by warps, each with 128 columns.
constexpr int64_t kSlab = 128, kEach = 64;

struct Piece {
  int32_t first, begin, end;  // where it begins, and its id's rows [begin, end), in sorted order
  // Each piece of a long id has its own place: of those that begin in the same 64 at most one is its id's first.
  __device__ int64_t place() const { return 2 * (first / kEach) + (first == begin ? 0 : 1); }
};

void find_pieces(const Exec& exec, const int32_t* sorted, int64_t rows, Piece* pieces, int32_t* count) {
  each_thread(exec, rows, [=] __device__(int64_t i) {
    const int32_t id = sorted[i];
    int64_t begin = i;
    if (i > 0 && sorted[i - 1] == id) {
      if (i < kEach || sorted[i - kEach] != id) return;  // its first piece began less than a piece ago
      begin = first_not_below(sorted, rows, id);
    }
    if ((i - begin) % kEach != 0) return;
    const int64_t end = first_not_below(sorted, rows, int64_t{id} + 1);
    pieces[atomicAdd(count, 1)] = {static_cast<int32_t>(i), static_cast<int32_t>(begin), static_cast<int32_t>(end)};
  });
}

template <class A>
void embedding_backward_in(const Exec& exec, const EmbeddingBackwardArgs& a) {
  using R = typename A::Real;
  const A table(a.dtable.tensor), dy(a.dy);
  const R factor = static_cast<R>(a.factor);
  const int64_t rows = a.dy.rows(), width = a.dy.cols(), slabs = (width + kSlab - 1) / kSlab;
  const bool add = a.dtable.add;
  if (!add) fill(exec, {.y = a.dtable.tensor, .value = 0});
  if (rows == 0) return;
  const auto padded = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  const int64_t ids_bytes = padded(4 * rows), pieces_bytes = padded(static_cast<int64_t>(sizeof(Piece)) * rows),
                sums_bytes = 2 * (rows / kEach + 1) * width * static_cast<int64_t>(sizeof(R));
  StreamMemory memory(exec);
  std::byte* room =
      memory.room(exec, 2 * ids_bytes + pieces_bytes + padded(4) + std::max(sums_bytes, sort_bytes(rows)));
  if (room == nullptr) return;
  const auto take = [&](int64_t bytes) { return std::exchange(room, room + bytes); };
  auto* order = reinterpret_cast<int32_t*>(take(ids_bytes));
  auto* sorted = reinterpret_cast<int32_t*>(take(ids_bytes));
  auto* pieces = reinterpret_cast<Piece*>(take(pieces_bytes));
  auto* count = reinterpret_cast<int32_t*>(take(padded(4)));
  auto* partial = reinterpret_cast<R*>(room);  // after the sort, which has its room there too
  sort_by_id(exec, a.ids.as<int32_t>(), rows, a.dtable.tensor.dim(0), order, sorted, room);
  each_thread(exec, 1, [=] __device__(int64_t) { *count = 0; });
  find_pieces(exec, sorted, rows, pieces, count);
  // How many pieces there are is known on the device alone.
  const int64_t warps = std::min<int64_t>(rows * slabs, int64_t{1} << 15);
  each_thread(exec, 32 * warps, [=] __device__(int64_t i) {
    for (int64_t task = i / 32; task < *count * slabs; task += warps) {
      const Piece piece = pieces[task / slabs];
      const int64_t c = task % slabs * kSlab + 4 * (i % 32), end = min(piece.first + kEach, int64_t{piece.end});
      if (c >= width) continue;
      R sum[4] = {};
#pragma unroll A::kUnroll
      for (int64_t k = piece.first; k < end; ++k) {
        R v[4];
        dy.load(order[k], c, v);
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += factor * v[j];
      }
      if (piece.end - piece.begin <= kEach) {
        table.put(sorted[piece.begin], c, sum, add);
      } else {
        for (int j = 0; j < 4 && c + j < width; ++j) partial[piece.place() * width + c + j] = sum[j];
      }
    }
  });
  each_thread(exec, 32 * warps, [=] __device__(int64_t i) {
    for (int64_t task = i / 32; task < *count * slabs; task += warps) {
      const Piece piece = pieces[task / slabs];
      const int64_t c = task % slabs * kSlab + 4 * (i % 32);
      if (piece.first != piece.begin || piece.end - piece.begin <= kEach || c >= width) continue;
      R sum[4] = {};
#pragma unroll 4
      for (int64_t at = piece.begin; at < piece.end; at += kEach) {
        const R* from = partial + Piece{static_cast<int32_t>(at), piece.begin, piece.end}.place() * width + c;
        for (int j = 0; j < 4; ++j) sum[j] += c + j < width ? from[j] : R{0};
      }
      table.put(sorted[piece.begin], c, sum, add);
    }
  });
}

// Keys and values as bytes with a scale: a warp per row.
template <class A>
void scatter_bytes(const Exec& exec, const ScatterRowsArgs& a, int64_t rows_each) {
  const View y(a.y), scales(a.scales);
  const A x(a.x);
  const int32_t* slots = a.slots.as<int32_t>();
  const int64_t rows = a.x.dim(0) * rows_each, width = a.x.cols();
  const bool fours = a.y.contiguous() && width % 4 == 0 && reinterpret_cast<uintptr_t>(a.y.data()) % 4 == 0;
  each_thread(exec, rows * 32, [=] __device__(int64_t i) {
    const int64_t row = i / 32, lane = i % 32, to = slots[row / rows_each] * rows_each + row % rows_each;
    float highest = 0;
    bool finite = true;
    for (int64_t c = 4 * lane; c < width; c += 128) {
      float v[4];
      x.load(row, c, v);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        finite = finite && isfinite(v[k]);
        highest = fmaxf(highest, fabsf(v[k]));
      }
    }
    highest = warp_max(highest);
    finite = __all_sync(0xffffffffU, finite);
    const bool zero = !finite || highest < kSmallestScaled;
    const float scale = !finite ? NAN : zero ? 0 : highest / 127;
    for (int64_t c = 4 * lane; c < width; c += 128) {
      float v[4];
      x.load(row, c, v);
      char4 bytes;
      auto* byte = reinterpret_cast<signed char*>(&bytes);
#pragma unroll
      for (int k = 0; k < 4; ++k) byte[k] = static_cast<signed char>(zero ? 0.0F : nearbyintf(v[k] / scale));
      if (fours) {
        *reinterpret_cast<char4*>(y.data + to * width + c) = bytes;
      } else {
        for (int k = 0; k < 4 && c + k < width; ++k) y.data[y.row(to) + c + k] = static_cast<std::byte>(byte[k]);
      }
    }
    if (lane == 0) scales.set(to, scale);
  });
}

template <class A, int N>
void scatter_in(const Exec& exec, const ScatterRowsArgs& a, int64_t rows_each) {
  using R = typename A::Real;
  const A y(a.y), x(a.x);
  const int32_t* slots = a.slots.as<int32_t>();
  each_pack<N>(exec, a.x.rows(), a.x.cols(), [=] __device__(int64_t row, int64_t c) {
    R v[N];
    x.load(row, c, v);
    y.store(slots[row / rows_each] * rows_each + row % rows_each, c, v);
  });
}

}  // namespace

void embedding(const Exec& exec, const EmbeddingArgs& a) noexcept {
  if (!a.table.format().plain()) return in_real(a.y, [&](auto r) { embedding_blocks<decltype(r)>(exec, a); });
  in_form(a.y, {&a.y, &a.table}, [&]<class A, int N>(A, Count<N>) { embedding_in<A, N>(exec, a); });
}
void embedding_backward(const Exec& exec, const EmbeddingBackwardArgs& a) noexcept {
  in_form(a.dtable.tensor, {&a.dtable.tensor, &a.dy}, [&]<class A>(A, auto) { embedding_backward_in<A>(exec, a); });
}
void scatter_rows(const Exec& exec, const ScatterRowsArgs& a) noexcept {
  if (a.x.dim(0) == 0) return;
  const int64_t rows_each = a.x.rows() / a.x.dim(0);  // a key is G rows of D
  if (a.scales.defined()) {
    return Packed<Either>::takes(a.x, 4) ? scatter_bytes<Packed<Either>>(exec, a, rows_each)
                                         : scatter_bytes<Loose<float>>(exec, a, rows_each);
  }
  in_form(a.y, {&a.y, &a.x}, [&]<class A, int N>(A, Count<N>) { scatter_in<A, N>(exec, a, rows_each); });
}

}  // namespace qkv::kernels::cuda
