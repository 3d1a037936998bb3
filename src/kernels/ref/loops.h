// The reference loops of every kernel, written over an index range so that two tables share them: `ref` runs the whole
// range at once, `cpu` splits it over the pool. Pieces are independent, so the bits are the same.
#pragma once

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "core/kernels.h"
#include "kernels/ref/access.h"

namespace qkv::kernels::ref {

// Runs f over [0, count), in one piece or one piece per thread of the pool.
class Split {
 public:
  Split() = default;
  explicit Split(ThreadPool& pool) : pool_(&pool) {}

  void operator()(int64_t count, FunctionRef<void(Range)> f) const;

 private:
  ThreadPool* pool_ = nullptr;
};

#define QKV_KERNEL(kernel, Args) void kernel(const Split& split, const Args& a);
QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL

}  // namespace qkv::kernels::ref
