// Where a kernel runs: the device, the pool (or stream) and its working memory. First argument of every kernel.
#pragma once

#include "core/tensor.h"

namespace qkv {

class ThreadPool;

struct Exec {
  Device* device = nullptr;
  ThreadPool* pool = nullptr;  // CPU devices
  void* stream = nullptr;      // devices that queue their work
  Tensor scratch;              // i8 [threads, bytes per thread], allocated once; kernels choose block sizes that fit
};

}  // namespace qkv
