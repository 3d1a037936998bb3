// Threads that do one thing after the other. Reading requests and writing answers have one each, so that a long prompt
// that is being read delays no text that is being written.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace qkv::server {

class WorkQueue {
 public:
  WorkQueue(const char* name, int threads);  // the name of its threads, as top -H shows it
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue();  // does what is waiting, then ends

  void add(std::function<void()> work);  // which must not throw
  // The same, unless `max_waiting` wait already; returns whether it was added.
  bool try_add(std::function<void()> work, size_t max_waiting);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv::server
