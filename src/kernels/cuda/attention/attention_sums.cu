// Sums of attention statistics over groups of rows. A block takes 32 numbers of a group; its 32 warps take every 32nd
// row in order, then the warps are added in order. Neighbouring numbers lie together in memory: those of all heads of
// one statistic.
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

constexpr int kSumWarps = 32;  // waiting for memory is most of it, so many rows are called for at once

template <class R>
struct SumsOf {
  const R *entropy, *distance, *first, *at_offset, *in_class;
  const int32_t *argmax, *offsets, *groups, *labels, *wanted;
  const double* weights;
  double* y;
  StatsColumns at;
  int64_t heads, label_count;

  __device__ double sum(const R* from, int64_t stride, int which, int64_t row, int64_t end) const {
    double total = 0;
#pragma unroll 8
    for (; row < end; row += kSumWarps) total += weights[3 * row + which] * static_cast<double>(from[row * stride]);
    return total;
  }
  template <class F>
  __device__ double count(int64_t head, int64_t row, int64_t end, const F& meant) const {
    double total = 0;
#pragma unroll 8
    for (; row < end; row += kSumWarps) {
      if (meant(row, argmax[row * heads + head])) total += weights[3 * row];
    }
    return total;
  }

  // Number i of those of a group, statistic by statistic, and in each of them head by head.
  struct Number {
    int64_t column, head;
    double sum;
  };
  __device__ Number number(int64_t i, const int32_t* group, int warp) const {
    const int64_t row = group[0] + warp, end = int64_t{group[0]} + group[1];
    if (i < 3 * heads) {
      const int64_t column = i / heads, head = i % heads;
      const R* from = column == at.entropy ? entropy : column == at.distance ? distance : first;
      return {column, head, sum(from + head, heads, column == at.entropy ? 1 : 0, row, end)};
    }
    i -= 3 * heads;
    if (i < at.offsets * heads) {
      return {at.at_offset(i % at.offsets), i / at.offsets, sum(at_offset + i, at.offsets * heads, 0, row, end)};
    }
    i -= at.offsets * heads;
    if (i < at.offsets * heads) {
      const int64_t o = i / heads, head = i % heads;
      const int shift = group[2] - group[0] - offsets[o];
      return {at.strongest(o), head, count(head, row, end, [=](int64_t r, int32_t key) { return key == r + shift; })};
    }
    i -= at.offsets * heads;
    for (int again = 0; again < 2; ++again) {
      if (i < at.classes * heads) {
        const int64_t k = i % at.classes;
        return {again == 0 ? at.in_class(k) : at.again(k), i / at.classes,
                sum(in_class + i, at.classes * heads, 2 * again, row, end)};
      }
      i -= at.classes * heads;
    }
    const int64_t w = i / heads, head = i % heads;
    return {at.labelled(w), head, count(head, row, end, [=, this](int64_t r, int32_t key) {
              const int64_t label = int64_t{group[3]} + key;
              return key >= 0 && label < label_count && labels[label] == wanted[r * at.wanted + w];
            })};
  }

  __device__ void operator()(int64_t block) const {
    __shared__ double parts[kSumWarps][32];
    const int64_t numbers = at.count() * heads, each = (numbers + 31) / 32, g = block / each;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t i = block % each * 32 + lane;
    Number found{};
    if (i < numbers) found = number(i, groups + 4 * g, warp);
    parts[warp][lane] = found.sum;
    __syncthreads();
    if (warp == 0 && i < numbers) {
      double total = found.sum;
      for (int w = 1; w < kSumWarps; ++w) total += parts[w][lane];
      y[(g * heads + found.head) * at.count() + found.column] = total;
    }
    __syncthreads();
  }
};

template <class T>
T* pointer(const Tensor& t) {
  return t.defined() ? reinterpret_cast<T*>(t.data()) : nullptr;
}

}  // namespace

void attention_sums(const Exec& exec, const AttentionSumsArgs& a) noexcept {
  in_real(a.stats.entropy, [&]<class R>(R) {
    const SumsOf<R> sums{.entropy = pointer<R>(a.stats.entropy),
                         .distance = pointer<R>(a.stats.distance),
                         .first = pointer<R>(a.stats.first),
                         .at_offset = pointer<R>(a.stats.at_offset),
                         .in_class = pointer<R>(a.stats.in_class),
                         .argmax = pointer<int32_t>(a.stats.argmax),
                         .offsets = pointer<int32_t>(a.stats.offsets),
                         .groups = pointer<int32_t>(a.rows.groups),
                         .labels = pointer<int32_t>(a.rows.labels),
                         .wanted = pointer<int32_t>(a.rows.wanted),
                         .weights = pointer<double>(a.rows.weights),
                         .y = pointer<double>(a.y),
                         .at = a.columns(),
                         .heads = a.y.dim(1),
                         .label_count = a.rows.labels.defined() ? a.rows.labels.count() : 0};
    each_block<32 * kSumWarps>(exec, a.y.dim(0) * ((sums.at.count() * sums.heads + 31) / 32), sums);
  });
}

}  // namespace qkv::kernels::cuda
