#include "block.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "tensor_cores.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace gpu_by_hand {
namespace {

namespace context = boost::context::detail;

constexpr size_t kStackBytes = 256 << 10;
constexpr int kBarriers = 16, kWarpgroups = kMostThreads / (4 * kWarpSize), kKinds = 2;

struct Group {
  std::vector<std::function<void()>> work;
};

struct Thread {
  context::fcontext_t at = nullptr;
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

// All of it belongs to who holds `running`.
std::mutex running;
Grid grid;
const std::function<void()>* body = nullptr;
std::vector<Thread> threads;
std::array<Warp, kMostThreads / kWarpSize> warps;
std::array<Gate, kBarriers + kWarpgroups> gates;
std::map<uint32_t, Barrier> barriers;
std::deque<Copy> copies;
std::deque<Thread*> ready;
Thread* now = nullptr;
int alive = 0;
context::fcontext_t scheduler = nullptr;
alignas(1024) unsigned char shared[kMostShared];
std::mt19937 shuffler;

enum class Order { forward, backward, shuffled };
Order order() {
  static const Order chosen = [] {
    const char* text = std::getenv("QKV_GPU_ORDER");
    if (text == nullptr) return Order::forward;
    if (std::string_view(text) == "backward") return Order::backward;
    shuffler.seed(static_cast<unsigned>(std::atoi(text)));
    return Order::shuffled;
  }();
  return chosen;
}

#ifdef __SANITIZE_ADDRESS__
void* scheduler_fake = nullptr;
const void* scheduler_stack = nullptr;
size_t scheduler_size = 0;
#endif

void make_current(Thread& thread) {
  now = &thread;
  const auto i = static_cast<unsigned>(thread.index);
  threadIdx = {i, 0, 0};
}

// Back to run(), until somebody makes this thread ready.
void pause(const char* what) {
  Thread& mine = *now;
  mine.waits_for = what;
#ifdef __SANITIZE_ADDRESS__
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, scheduler_stack, scheduler_size);
#endif
  scheduler = context::jump_fcontext(scheduler, nullptr).fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_size);
#endif
  mine.waits_for = "";
}

void wake(std::vector<Thread*>& waiting) {
  ready.insert(ready.end(), waiting.begin(), waiting.end());
  waiting.clear();
}

Warp& warp_of(const Thread& thread) {
  return warps[static_cast<size_t>(thread.index / kWarpSize)];
}

// Whether all who are still there have come.
bool complete(const Warp& warp, const Meeting& meeting) {
  return meeting.here != 0 && (meeting.mask & warp.alive & ~meeting.here) == 0;
}

// All but `except`, who goes on by itself, become ready.
void close(Warp& warp, Meeting& meeting, const Thread* except) {
  const unsigned here = meeting.here;
  meeting.all(meeting.records.data(), here);
  meeting.here = 0;
  const auto first = static_cast<size_t>(&warp - warps.data()) * kWarpSize;
  for (size_t i = 0; i < kWarpSize; ++i) {
    if ((here >> i & 1U) != 0 && &threads[first + i] != except) ready.push_back(&threads[first + i]);
  }
}

bool open_gate(Gate& gate) {
  if (gate.here == 0 || gate.here < (gate.wanted == 0 ? alive : gate.wanted)) return false;
  gate.last_brought = gate.bring;
  gate.here = gate.bring = 0;
  wake(gate.waiting);
  return true;
}

void end_thread() {
  Thread& mine = *now;
  for (const Work kind : {Work::copies_in, Work::copies_out}) {
    end_group(kind);
    wait_groups(kind, 0);
  }
  products_are_done();
  mine.ended = true;
  --alive;
  Warp& warp = warp_of(mine);
  warp.alive &= ~(1U << (mine.index % kWarpSize));
  for (Meeting& meeting : warp.meetings) {
    if (complete(warp, meeting)) close(warp, meeting, nullptr);
  }
  for (Gate& gate : gates) {
    if (gate.wanted == 0) open_gate(gate);
  }
}

void thread_main(context::transfer_t from) {
  scheduler = from.fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
  for (;;) {
    (*body)();
    end_thread();
    pause("a block");
  }
}

void resume(Thread& thread) {
  make_current(thread);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&scheduler_fake, thread.stack, kStackBytes);
#endif
  thread.at = context::jump_fcontext(thread.at, nullptr).fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

void make_threads(size_t count) {
  while (threads.size() < kMostThreads) threads.emplace_back();
  for (size_t i = 0; i < count; ++i) {
    Thread& thread = threads[i];
    thread.index = static_cast<int>(i);
    if (thread.stack != nullptr) continue;
    void* const memory =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fault("no memory for a stack");
    thread.stack = static_cast<unsigned char*>(memory);
    thread.at = context::make_fcontext(thread.stack + kStackBytes, kStackBytes, thread_main);
  }
}

void pass_if_complete(Barrier& barrier) {
  if (barrier.arrivals != barrier.count || barrier.bytes != 0) return;
  barrier.arrivals = 0;
  ++barrier.passed;
  wake(barrier.waiting);
}

Barrier& barrier_at(uint32_t at) {
  const auto found = barriers.find(at);
  if (found == barriers.end()) fault("a barrier that was not initialised");
  return found->second;
}

void finish(const Copy& copy) {
  copy.run();
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= copy.bytes;
  pass_if_complete(barrier);
}

Thread* next() {
  if (order() == Order::shuffled) std::swap(ready.front(), ready[shuffler() % ready.size()]);
  Thread* const thread = order() == Order::backward ? ready.back() : ready.front();
  order() == Order::backward ? ready.pop_back() : ready.pop_front();
  return thread;
}

void run_block() {
  for (size_t w = 0; w < (grid.threads + kWarpSize - 1) / kWarpSize; ++w) {
    const unsigned in_warp = std::min<unsigned>(grid.threads - static_cast<unsigned>(w) * kWarpSize, kWarpSize);
    warps[w].alive = in_warp == kWarpSize ? kAllLanes : (1U << in_warp) - 1;
    for (Meeting& meeting : warps[w].meetings) meeting.here = 0;
  }
  for (Gate& gate : gates) {
    gate.here = gate.bring = gate.wanted = 0;
    gate.waiting.clear();
  }
  barriers.clear();
  copies.clear();
  if (grid.shared_bytes > 0) std::memset(shared, 0xff, grid.shared_bytes);  // NaN, large numbers
  alive = static_cast<int>(grid.threads);
  for (size_t i = 0; i < grid.threads; ++i) {
    threads[i].ended = false;
    ready.push_back(&threads[i]);
  }
  while (alive > 0) {
    if (!ready.empty()) {
      resume(*next());
    } else if (!copies.empty()) {
      const Copy copy = std::move(copies.front());
      copies.pop_front();
      finish(copy);
    } else {
      std::fprintf(stderr, "gpu by hand: block %u %u %u of %s stands still\n", blockIdx.x, blockIdx.y, blockIdx.z,
                   grid.name);
      std::map<std::string, int> waiting;
      for (size_t i = 0; i < grid.threads; ++i) ++waiting[threads[i].ended ? "nothing, ended" : threads[i].waits_for];
      for (const auto& [what, count] : waiting) std::fprintf(stderr, "  %d threads wait for %s\n", count, what.c_str());
      for (const auto& [at, barrier] : barriers) {
        std::fprintf(stderr, "  barrier at %u: passed %u times, %u of %u have arrived, %lld bytes missing, %zu wait\n",
                     at, barrier.passed, barrier.arrivals, barrier.count, static_cast<long long>(barrier.bytes),
                     barrier.waiting.size());
      }
      std::abort();
    }
  }
  if (!ready.empty()) fault("threads are ready that have ended");
}

}  // namespace

void fault(const char* what) {
  std::fprintf(stderr, "gpu by hand: %s, in thread %d, block %u %u %u of %s\n", what, now != nullptr ? now->index : -1,
               blockIdx.x, blockIdx.y, blockIdx.z, grid.name);
  std::abort();
}

void run(const Grid& wanted, const std::function<void()>& of_thread) {
  const std::lock_guard held(running);
  grid = wanted;
  body = &of_thread;
  make_threads(grid.threads);
  const dim3 size(grid.blocks[0], grid.blocks[1], grid.blocks[2]);
  gridDim = size;
  blockDim = dim3(grid.threads);
  for (unsigned z = 0; z < size.z; ++z) {
    for (unsigned y = 0; y < size.y; ++y) {
      for (unsigned x = 0; x < size.x; ++x) {
        const bool back = order() == Order::backward;
        blockIdx = back ? uint3{size.x - 1 - x, size.y - 1 - y, size.z - 1 - z} : uint3{x, y, z};
        run_block();
      }
    }
  }
  now = nullptr;
}

int thread_index() {
  return now->index;
}

int lane() {
  return now->index % kWarpSize;
}

unsigned char* shared_memory() {
  return shared;
}

uint32_t dynamic_shared_bytes() {
  return grid.shared_bytes;
}

uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const unsigned char*>(p) - shared);
}

unsigned char* shared_at(uint32_t address) {
  return shared + static_cast<int32_t>(address);
}

void meet_lanes(unsigned mask, void* mine, Together all) {
  Thread& thread = *now;
  Warp& warp = warp_of(thread);
  const auto lane = static_cast<size_t>(thread.index % kWarpSize);
  if ((mask >> lane & 1U) == 0) fault("a lane that is not in its own mask");
  Meeting* found = nullptr;
  for (Meeting& meeting : warp.meetings) {
    if (meeting.here != 0 && meeting.mask == mask) found = &meeting;
  }
  if (found == nullptr) {
    for (Meeting& meeting : warp.meetings) {
      if (meeting.here == 0) found = &meeting;
    }
    if (found == nullptr) fault("too many meetings in a warp at once");
    found->mask = mask;
    found->all = all;
  }
  if (found->all != all) fault("lanes of a warp meet at different instructions");
  found->here |= 1U << lane;
  found->records[lane] = mine;
  if (complete(warp, *found)) {
    close(warp, *found, &thread);
  } else {
    pause("other lanes");
  }
}

int meet_threads(int barrier, int wanted, bool brings) {
  Gate& gate = gates[static_cast<size_t>(barrier)];
  if (gate.here != 0 && gate.wanted != wanted) fault("threads wait at one barrier for different numbers of them");
  gate.wanted = wanted;
  ++gate.here;
  gate.bring += brings ? 1 : 0;
  if (!open_gate(gate)) {
    gate.waiting.push_back(now);
    pause("other threads");
  }
  return gate.last_brought;
}

void meet_warpgroup(int warpgroup) {
  meet_threads(kBarriers + warpgroup, 4 * kWarpSize, false);
}

void barrier_init(uint32_t at, uint32_t count) {
  if (at % 8 != 0) fault("a barrier is not aligned");
  barriers[at] = Barrier{};
  barriers[at].count = count;
}

void barrier_arrive(uint32_t at, uint32_t bytes_to_come) {
  Barrier& barrier = barrier_at(at);
  barrier.bytes += bytes_to_come;
  ++barrier.arrivals;
  if (barrier.arrivals > barrier.count) fault("too many arrive at a barrier");
  pass_if_complete(barrier);
}

void barrier_wait(uint32_t at, uint32_t parity) {
  Barrier& barrier = barrier_at(at);
  while (barrier.passed % 2 == parity) {
    barrier.waiting.push_back(now);
    pause("a barrier in shared memory");
  }
}

void copy_later(std::function<void()> copy, uint32_t barrier, uint32_t bytes) {
  Copy made{std::move(copy), barrier, bytes};
  const bool at_once = order() == Order::backward || (order() == Order::shuffled && shuffler() % 2 == 0);
  if (at_once) return finish(made);
  copies.push_back(std::move(made));
}

void add_work(Work kind, std::function<void()> work) {
  auto& groups = now->groups[static_cast<size_t>(kind)];
  if (groups.empty()) groups.emplace_back();
  groups.back().work.push_back(std::move(work));
}

void end_group(Work kind) {
  auto& groups = now->groups[static_cast<size_t>(kind)];
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}

void wait_groups(Work kind, size_t but_the_last) {
  auto& groups = now->groups[static_cast<size_t>(kind)];
  while (groups.size() > but_the_last + 1) {  // the last of all is open
    const Group group = std::move(groups.front());
    groups.pop_front();
    for (const auto& work : group.work) work();
  }
  if (groups.size() == 1 && groups.front().work.empty()) groups.clear();
}

}  // namespace gpu_by_hand
