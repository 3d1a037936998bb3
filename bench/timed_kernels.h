// A kernel table that keeps the time of every call.
#pragma once

#include <string>
#include <vector>

#include "core/kernels.h"

namespace qkv::bench {

// The same kernels, timed. One table at a time: a kernel is a plain function, so its time has one place.
const Kernels& timed_kernels(const Kernels& table);

struct KernelTime {
  std::string name;
  double seconds = 0;
  int64_t calls = 0;
};
// Since the last time it was asked, the longest first; kernels that were not called are left out.
std::vector<KernelTime> take_kernel_times();

}  // namespace qkv::bench
