// A thread pool with a fixed split of tasks: the same thread gets the same tasks every time, which suits its cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpus.h"
#include "base/function_ref.h"

namespace qkv {

class ThreadPool {
 public:
  // At most kMostThreads; 0 means default_threads().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(task, thread) for every task in [0, tasks). Thread t of n takes the tasks [t*tasks/n, (t+1)*tasks/n) in
  // order; thread 0 is the caller, and runs a single task alone. All writes of the tasks are visible when run returns.
  // A task that throws ends its thread's share; the others finish theirs, then the exception of the lowest task is
  // rethrown here. A nested run is done inline, with the number of the thread it is on.
  // Denormals are flushed to zero in every task, on every thread.
  void run(int64_t tasks, FunctionRef<void(int64_t task, int thread)> body);

 private:
  using Body = FunctionRef<void(int64_t, int)>;

  void start_workers();
  void stop_workers();
  void worker(int thread);
  void do_share(int thread) noexcept;
  void wait_for_workers();

  int threads_;
  int spins_;                // polls of a flag before sleeping on it
  std::vector<int> pin_to_;  // the CPU of each thread, or empty
  std::vector<std::thread> workers_;

  std::mutex one_run_;  // held by the run in progress
  const Body* body_ = nullptr;
  int64_t tasks_ = 0;
  bool stop_ = false;
  std::vector<std::exception_ptr> errors_;  // by thread

  alignas(64) std::atomic<uint32_t> round_{0};  // incremented when there is work, or to stop
  alignas(64) std::atomic<int> busy_{0};        // workers that have not finished this round
};

}  // namespace qkv
