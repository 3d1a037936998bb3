// The thread pool, the device and the kernels' scratch memory: one per program. Contexts are made from it.
#pragma once

#include "base/thread_pool.h"
#include "core/context.h"

namespace qkv {

class Engine {
 public:
  struct Options {
    int threads = 0;           // 0: as many as the machine, the affinity mask and the cgroup allow
    Device* device = nullptr;  // absent: the kernels' own
  };

  explicit Engine(const Kernels& kernels) : Engine(kernels, Options{}) {}
  Engine(const Kernels& kernels, Options options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Kernels& kernels() const { return kernels_; }
  const Exec& exec() const { return exec_; }
  Device& device() const { return *exec_.device; }
  int threads() const { return pool_.threads(); }

  Context context(Arena& arena, Precision precision) const {
    return Context{.kernels = kernels_,
                   .exec = exec_,
                   .arena = arena,
                   .precision = precision,
                   .constants = constants_.get(),
                   .turn = device().turn()};
  }

 private:
  const Kernels& kernels_;
  ThreadPool pool_;
  Storage scratch_;
  std::unique_ptr<Constants> constants_;
  Exec exec_;
};

}  // namespace qkv
