// Threads that share what only one of them may use at a time have it in turn, in the order in which they asked. Who has it
// may take it again. A mutex would let a busy thread in again and again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace qkv {

class Turns {  // for std::lock_guard and its like
 public:
  void lock() {
    std::unique_lock held(mutex_);
    if (of_ != std::this_thread::get_id()) {
      const uint64_t mine = asked_++;
      changed_.wait(held, [&] { return mine == now_; });
      of_ = std::this_thread::get_id();
    }
    ++taken_;
  }
  bool try_lock() {  // where nobody else has it or waits for it
    const std::lock_guard held(mutex_);
    if (of_ != std::this_thread::get_id()) {
      if (asked_ != now_) return false;
      ++asked_;
      of_ = std::this_thread::get_id();
    }
    ++taken_;
    return true;
  }
  void unlock() {
    {
      const std::lock_guard held(mutex_);
      if (--taken_ > 0) return;
      of_ = {};
      ++now_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t asked_ = 0, now_ = 0;  // turns given out, and the one that may begin
  std::thread::id of_;
  int taken_ = 0;  // times, by its thread
};

// A turn that lasts as long as what is returned; to be dropped by the thread that took it.
inline std::shared_ptr<void> take_turn(Turns& turns) {
  turns.lock();
  return {&turns, [](void* taken) { static_cast<Turns*>(taken)->unlock(); }};
}

}  // namespace qkv
