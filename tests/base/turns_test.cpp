#include "base/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace qkv {
namespace {

TEST(Turns, OneThreadAtATimeHasIt) {
  Turns turns;
  int64_t counted = 0;  // not atomic
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const std::lock_guard turn(turns);
        const std::lock_guard again(turns);
        ++counted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 8000);
}

TEST(Turns, WhoAsksAgainComesAfterThoseWhoWait) {
  Turns turns;
  std::atomic<bool> asking = false, had = false;
  turns.lock();
  std::thread other([&] {
    asking = true;
    const std::lock_guard turn(turns);
    had = true;
  });
  while (!asking) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // by now it waits
  EXPECT_FALSE(had);
  turns.unlock();
  turns.lock();
  EXPECT_TRUE(had);
  turns.unlock();
  other.join();
}

TEST(Turns, AreOnlyTriedWhereNobodyElseHasOne) {
  Turns turns;
  const auto tried_by_another = [&] {
    bool had = false;
    std::thread([&] {
      had = turns.try_lock();
      if (had) turns.unlock();
    }).join();
    return had;
  };
  EXPECT_TRUE(tried_by_another());
  turns.lock();
  EXPECT_TRUE(turns.try_lock());  // once more
  EXPECT_FALSE(tried_by_another());
  turns.unlock();
  EXPECT_FALSE(tried_by_another());
  turns.unlock();
  EXPECT_TRUE(tried_by_another());
}

}  // namespace
}  // namespace qkv
