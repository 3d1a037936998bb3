// A kernel table that times every call.
#pragma once

#include <string>
#include <vector>

#include "core/kernels.h"

namespace qkv::bench {

// The same kernels, timed. Only one table at a time: kernels are plain functions, so the times are global.
const Kernels& timed_kernels(const Kernels& table);
// Timing waits for every kernel of a device that queues its work, which makes it slower: off while a whole is measured.
void time_kernels(bool on);

struct KernelTime {
  std::string name;
  double seconds = 0;
  int64_t calls = 0;
};
// Times since the last call, longest first, without kernels that were not called.
std::vector<KernelTime> take_kernel_times();

}  // namespace qkv::bench
