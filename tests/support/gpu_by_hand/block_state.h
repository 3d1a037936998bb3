// What a block of threads is while it runs: block.cpp has its threads, meetings.cpp where they meet and wait.
#pragma once

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "block.h"

namespace gpu_by_hand {

inline constexpr int kBarriers = 16, kWarpgroups = kMostThreads / (4 * kWarpSize), kKinds = 2;

struct Group {
  std::vector<std::function<void()>> work;
};

struct Thread {
  boost::context::detail::fcontext_t at = nullptr;
  unsigned char* stack = nullptr;
  int index = 0;
  bool ended = true;
  const char* waits_for = "";
  std::array<std::deque<Group>, kKinds> groups;  // the last one is still open
};

struct Meeting {
  unsigned mask = 0, here = 0;
  Together all = nullptr;
  std::array<void*, kWarpSize> records{};
};
struct Warp {
  unsigned alive = 0;
  std::array<Meeting, 4> meetings;
};
struct Gate {  // a barrier of threads
  int wanted = 0, here = 0, bring = 0, last_brought = 0;
  std::vector<Thread*> waiting;
};
struct Barrier {  // of arrivals and bytes
  uint32_t count = 0, arrivals = 0, passed = 0;
  int64_t bytes = 0;
  std::vector<Thread*> waiting;
};
struct Copy {
  std::function<void()> run;
  uint32_t barrier, bytes;
};

struct Block {
  Kernel* kernel = nullptr;
  int64_t number = 0;  // x first, then y, then z
  std::deque<Thread> threads;
  std::array<Warp, kMostThreads / kWarpSize> warps;
  std::array<Gate, kBarriers + kWarpgroups> gates;
  std::map<uint32_t, Barrier> barriers;
  std::deque<Copy> copies;
  std::deque<Thread*> ready;
  int alive = 0;

  bool before_last = false;         // the kernel before has not ended
  std::vector<Thread*> until_last;  // who waits for that
  bool waited = false, lets_next = false;
  std::vector<unsigned char> shared;  // what it has of it, while others run
};

// The block that runs and the thread that does; all of it belongs to who runs a kernel.
extern Block* here;
extern Thread* now;

enum class Order { forward, backward, shuffled };
Order order();
extern std::mt19937 shuffler;

// Back to who runs the block, until somebody makes this thread ready.
void pause(const char* what);
void wake(std::vector<Thread*>& waiting);

void finish(const Copy& copy);
// The thread that runs meets nobody any more.
void leave();

}  // namespace gpu_by_hand
