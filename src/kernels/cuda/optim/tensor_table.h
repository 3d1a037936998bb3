// Kernels over many tensors at once: those of a model are hundreds, most of them so small that launches would take longer
// than the work. A block finds its tensor in a table among the arguments.
#pragma once

#include "kernels/cuda/packed.h"

namespace qkv::kernels::cuda {

inline constexpr int kMostTensors = 64;  // a launch

template <class Entry>
struct TensorTable {
  int count = 0;
  unsigned first[kMostTensors + 1] = {};  // block of each tensor
  Entry of[kMostTensors];

  void add(const Entry& entry, int64_t blocks) {
    of[count] = entry;
    first[count + 1] = first[count] + static_cast<unsigned>(blocks);
    ++count;
  }
  __device__ int find(unsigned block) const {
    int low = 0, end = count;
    while (end - low > 1) {
      const int middle = (low + end) / 2;
      (first[middle] <= block ? low : end) = middle;
    }
    return low;
  }
};

// Calls add(table, one) for each of `all` and run(table) whenever a table is full, and at the end.
template <class Entry, class Args, class Add, class Run>
void in_tables(std::span<const Args> all, const Add& add, const Run& run) {
  TensorTable<Entry> table;
  for (const Args& one : all) {
    add(table, one);
    if (table.count < kMostTensors) continue;
    run(table);
    table = {};
  }
  if (table.count > 0) run(table);
}

template <class T>
bool in_fours(const Tensor& t) {
  return t.contiguous() && Packed<T>::takes(t.view({t.count()}), 4);
}

}  // namespace qkv::kernels::cuda
