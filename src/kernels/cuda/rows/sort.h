// Rows in order of an id, equal ids in order of their rows.
#pragma once

#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {

// Bytes of `room` that sort_by_id needs.
int64_t sort_bytes(int64_t count);

// order[i] is the row that comes i-th, sorted[i] its id. Ids are in [0, limit).
void sort_by_id(const Exec& exec, const int32_t* ids, int64_t count, int64_t limit, int32_t* order, int32_t* sorted,
                std::byte* room);

// The first of `count` sorted ids that is not below `id`.
__device__ inline int64_t first_not_below(const int32_t* sorted, int64_t count, int64_t id) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace qkv::kernels::cuda
