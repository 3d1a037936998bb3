// Rows of a table by index: embeddings, and the scatter of keys and values into pages.
#include <cmath>

#include "kernels/cuda/blocks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void embedding_as(const Exec& exec, const EmbeddingArgs& a) {
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

// A block per id of the batch; only the block of an id's first row works, and adds its rows in order.
template <class R>
void embedding_backward_as(const Exec& exec, const EmbeddingBackwardArgs& a) {
  const View table(a.dtable.tensor), dy(a.dy), ids(a.ids);
  const R factor = static_cast<R>(a.factor);
  const int64_t rows = a.dy.rows(), width = a.dy.cols();
  if (!a.dtable.add) fill(exec, {.y = a.dtable.tensor, .value = 0});
  each_block(exec, rows, [=] __device__(int64_t first) {
    const int32_t id = ids.id(first);
    bool earlier = false;
    for (int64_t r = threadIdx.x; r < first; r += kThreads) earlier = earlier || ids.id(r) == id;
    if (__syncthreads_or(earlier)) return;
    for (int64_t block = first; block < rows; block += kThreads) {
      // Which of the next rows have this id, a bit per row.
      __shared__ unsigned same[kWarps];
      const int64_t mine = block + threadIdx.x;
      const unsigned bits = __ballot_sync(0xffffffffU, mine < rows && ids.id(mine) == id);
      __syncthreads();
      if (threadIdx.x % 32 == 0) same[threadIdx.x / 32] = bits;
      __syncthreads();
      for (int64_t c = threadIdx.x; c < width; c += kThreads) {
        R total = table.get<R>(table.at(id) + c);
        for (int w = 0; w < kWarps; ++w) {
          for (unsigned left = same[w]; left != 0; left &= left - 1) {
            total += factor * dy.get<R>(dy.row(block + 32 * w + __ffs(static_cast<int>(left)) - 1) + c);
          }
        }
        table.set(table.at(id) + c, total);
      }
    }
  });
}

// Keys and values as bytes with a scale: a warp per row.
void scatter_bytes(const Exec& exec, const ScatterRowsArgs& a, int64_t rows_each) {
  const View y(a.y), x(a.x), slots(a.slots), scales(a.scales);
  const int64_t rows = a.x.dim(0) * rows_each, width = a.x.cols();
  each_thread(exec, rows * 32, [=] __device__(int64_t i) {
    const int64_t row = i / 32, lane = i % 32;
    const int64_t to = slots.id(row / rows_each) * rows_each + row % rows_each;
    float highest = 0;
    bool finite = true;
    for (int64_t c = lane; c < width; c += 32) {
      const float v = x.get<float>(x.row(row) + c);
      finite = finite && isfinite(v);
      highest = fmaxf(highest, fabsf(v));
    }
    highest = warp_max(highest);
    finite = __all_sync(0xffffffffU, finite);
    const bool zero = !finite || highest < kSmallestScaled;
    const float scale = !finite ? NAN : zero ? 0 : highest / 127;
    for (int64_t c = lane; c < width; c += 32) {
      y.set(y.row(to) + c, zero ? 0.0F : nearbyintf(x.get<float>(x.row(row) + c) / scale));
    }
    if (lane == 0) scales.set(to, scale);
  });
}

template <class R>
void scatter_as(const Exec& exec, const ScatterRowsArgs& a, int64_t rows_each) {
  const View y(a.y), x(a.x), slots(a.slots);
  const int64_t width = a.x.cols();
  each_thread(exec, a.x.count(), [=] __device__(int64_t i) {
    const int64_t row = i / width, c = i % width;
    const int64_t to = slots.id(row / rows_each) * rows_each + row % rows_each;
    y.set(y.row(to) + c, x.get<R>(x.row(row) + c));
  });
}

}  // namespace

void embedding(const Exec& exec, const EmbeddingArgs& a) noexcept {
  in_real(a.y, [&](auto r) { embedding_as<decltype(r)>(exec, a); });
}
void embedding_backward(const Exec& exec, const EmbeddingBackwardArgs& a) noexcept {
  in_real(a.dtable.tensor, [&](auto r) { embedding_backward_as<decltype(r)>(exec, a); });
}
void scatter_rows(const Exec& exec, const ScatterRowsArgs& a) noexcept {
  if (a.x.dim(0) == 0) return;
  const int64_t rows_each = a.x.rows() / a.x.dim(0);  // a key is G rows of D
  if (a.scales.defined()) return scatter_bytes(exec, a, rows_each);
  in_real(a.y, [&](auto r) { scatter_as<decltype(r)>(exec, a, rows_each); });
}

}  // namespace qkv::kernels::cuda
