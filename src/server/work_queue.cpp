#include "server/work_queue.h"

#include <pthread.h>

#include "base/log.h"

namespace qkv::server {

WorkQueue::WorkQueue(const char* name, int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
    ::pthread_setname_np(threads_.back().native_handle(), name);
  }
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkQueue::add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  more_.notify_one();
}

bool WorkQueue::try_add(std::function<void()> work, size_t max_waiting) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_waiting) return false;
    waiting_.push_back(std::move(work));
  }
  more_.notify_one();
  return true;
}

void WorkQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      next();
    } catch (const std::exception& failure) {
      log_line(Log::error, failure.what());
    }
    lock.lock();
  }
}

}  // namespace qkv::server
