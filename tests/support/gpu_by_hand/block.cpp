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
#include <utility>
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

}  // namespace

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

namespace {

// All of it belongs to who holds `running`.
std::mutex running;
std::vector<std::shared_ptr<Block>> spare;
Block* here = nullptr;
Thread* now = nullptr;
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
  here->ready.insert(here->ready.end(), waiting.begin(), waiting.end());
  waiting.clear();
}

Warp& warp_of(const Thread& thread) {
  return here->warps[static_cast<size_t>(thread.index / kWarpSize)];
}

// Whether all who are still there have come.
bool complete(const Warp& warp, const Meeting& meeting) {
  return meeting.here != 0 && (meeting.mask & warp.alive & ~meeting.here) == 0;
}

// All but `except`, who goes on by itself, become ready.
void close(Warp& warp, Meeting& meeting, const Thread* except) {
  const unsigned lanes = meeting.here;
  meeting.all(meeting.records.data(), lanes);
  meeting.here = 0;
  const auto first = static_cast<size_t>(&warp - here->warps.data()) * kWarpSize;
  for (size_t i = 0; i < kWarpSize; ++i) {
    Thread& thread = here->threads[first + i];
    if ((lanes >> i & 1U) != 0 && &thread != except) here->ready.push_back(&thread);
  }
}

bool open_gate(Gate& gate) {
  if (gate.here == 0 || gate.here < (gate.wanted == 0 ? here->alive : gate.wanted)) return false;
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
  --here->alive;
  Warp& warp = warp_of(mine);
  warp.alive &= ~(1U << (mine.index % kWarpSize));
  for (Meeting& meeting : warp.meetings) {
    if (complete(warp, meeting)) close(warp, meeting, nullptr);
  }
  for (Gate& gate : here->gates) {
    if (gate.wanted == 0) open_gate(gate);
  }
}

void thread_main(context::transfer_t from) {
  scheduler = from.fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
  for (;;) {
    here->kernel->body();
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

void make_threads(Block& block, size_t count) {
  while (block.threads.size() < count) {
    Thread& thread = block.threads.emplace_back();
    thread.index = static_cast<int>(block.threads.size()) - 1;
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
  const auto found = here->barriers.find(at);
  if (found == here->barriers.end()) fault("a barrier that was not initialised");
  return found->second;
}

void finish(const Copy& copy) {
  copy.run();
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= copy.bytes;
  pass_if_complete(barrier);
}

Thread* next() {
  auto& ready = here->ready;
  if (order() == Order::shuffled) std::swap(ready.front(), ready[shuffler() % ready.size()]);
  Thread* const thread = order() == Order::backward ? ready.back() : ready.front();
  order() == Order::backward ? ready.pop_back() : ready.pop_front();
  return thread;
}

void enter(Block& block) {
  here = &block;
  const Grid& grid = block.kernel->grid;
  gridDim = dim3(grid.blocks[0], grid.blocks[1], grid.blocks[2]);
  blockDim = dim3(grid.threads);
  const int64_t across = grid.blocks[0], number = block.number;
  blockIdx = {static_cast<unsigned>(number % across), static_cast<unsigned>(number / across % grid.blocks[1]),
              static_cast<unsigned>(number / across / grid.blocks[1])};
}

std::shared_ptr<Block> new_block(Kernel& kernel, int64_t number) {
  std::shared_ptr<Block> made = spare.empty() ? std::make_shared<Block>() : std::move(spare.back());
  if (!spare.empty()) spare.pop_back();
  Block& block = *made;
  const unsigned count = kernel.grid.threads;
  block.kernel = &kernel;
  block.number = number;
  enter(block);
  make_threads(block, count);
  for (unsigned w = 0; w < (count + kWarpSize - 1) / kWarpSize; ++w) {
    const unsigned in_warp = std::min<unsigned>(count - w * kWarpSize, kWarpSize);
    block.warps[w].alive = in_warp == kWarpSize ? kAllLanes : (1U << in_warp) - 1;
    for (Meeting& meeting : block.warps[w].meetings) meeting.here = 0;
  }
  for (Gate& gate : block.gates) {
    gate.here = gate.bring = gate.wanted = 0;
    gate.waiting.clear();
  }
  block.barriers.clear();
  block.copies.clear();
  if (kernel.grid.shared_bytes > 0) std::memset(shared, 0xff, kernel.grid.shared_bytes);  // NaN, large numbers
  block.alive = static_cast<int>(count);
  block.before_last = block.waited = block.lets_next = false;
  for (unsigned i = 0; i < count; ++i) {
    block.threads[i].ended = false;
    block.ready.push_back(&block.threads[i]);
  }
  return made;
}

void finish_oldest_copy() {
  const Copy copy = std::move(here->copies.front());
  here->copies.pop_front();
  finish(copy);
}

// What threads have sent for and do not wait for yet; whoever waits finds it done.
void fetch_all() {
  for (Thread& thread : here->threads) {
    for (Group& group : thread.groups[static_cast<size_t>(Work::copies_in)]) {
      for (auto& work : group.work) std::exchange(work, [] {})();
    }
  }
}

[[noreturn]] void stands_still() {
  const char* const name = here->kernel->grid.name;
  std::fprintf(stderr, "gpu by hand: block %u %u %u of %s stands still\n", blockIdx.x, blockIdx.y, blockIdx.z, name);
  std::map<std::string, int> waiting;
  for (size_t i = 0; i < here->kernel->grid.threads; ++i) {
    const Thread& thread = here->threads[i];
    ++waiting[thread.ended ? "nothing, ended" : thread.waits_for];
  }
  for (const auto& [what, count] : waiting) std::fprintf(stderr, "  %d threads wait for %s\n", count, what.c_str());
  for (const auto& [at, barrier] : here->barriers) {
    std::fprintf(stderr, "  barrier at %u: passed %u times, %u of %u have arrived, %lld bytes missing, %zu wait\n", at,
                 barrier.passed, barrier.arrivals, barrier.count, static_cast<long long>(barrier.bytes),
                 barrier.waiting.size());
  }
  std::abort();
}

// To the end, or to where it waits for the kernel before.
void go() {
  Block& block = *here;
  while (block.alive > 0) {
    if (!block.ready.empty()) {
      resume(*next());
    } else if (!block.copies.empty()) {
      finish_oldest_copy();
    } else if (!block.until_last.empty()) {
      return fetch_all();
    } else {
      stands_still();
    }
  }
}

// All that is left of it.
void end(std::shared_ptr<Block> block) {
  go();
  if (!block->ready.empty()) fault("threads are ready that have ended");
  if (block->kernel->early && !block->waited) fault("a block has not waited for the kernel before");
  now = nullptr;
  spare.push_back(std::move(block));
}

int64_t blocks_of(const Grid& grid) {
  return int64_t{grid.blocks[0]} * grid.blocks[1] * grid.blocks[2];
}

}  // namespace

void fault(const char* what) {
  std::fprintf(stderr, "gpu by hand: %s, in thread %d, block %u %u %u of %s\n", what, now != nullptr ? now->index : -1,
               blockIdx.x, blockIdx.y, blockIdx.z, here->kernel->grid.name);
  std::abort();
}

// The first and the last one: what they read there too early is wrong.
bool begin(Kernel& kernel) {
  const std::lock_guard held(running);
  bool next_may = true;
  const int64_t last = blocks_of(kernel.grid) - 1;
  for (int64_t number = 0; number <= last; number += std::max<int64_t>(last, 1)) {
    std::shared_ptr<Block> block = new_block(kernel, number);
    block->before_last = true;
    go();
    if (block->until_last.empty()) fault("a block has not waited for the kernel before");
    block->shared.assign(shared, shared + kernel.grid.shared_bytes);
    next_may = next_may && block->lets_next;
    kernel.begun.push_back(std::move(block));
  }
  now = nullptr;
  return next_may;
}

void finish(Kernel& kernel) {
  const std::lock_guard held(running);
  std::vector<int64_t> begun;
  for (std::shared_ptr<Block>& block : kernel.begun) {
    begun.push_back(block->number);
    enter(*block);
    std::copy(block->shared.begin(), block->shared.end(), shared);
    block->before_last = false;
    wake(block->until_last);
    end(std::move(block));
  }
  kernel.begun.clear();
  const int64_t blocks = blocks_of(kernel.grid);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t number = order() == Order::backward ? blocks - 1 - i : i;
    if (std::find(begun.begin(), begun.end(), number) == begun.end()) end(new_block(kernel, number));
  }
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
  return here->kernel->grid.shared_bytes;
}

uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const unsigned char*>(p) - shared);
}

unsigned char* shared_at(uint32_t address) {
  return shared + static_cast<int32_t>(address);
}

void wait_for_last() {
  here->waited = true;
  if (!here->before_last) return;
  here->until_last.push_back(now);
  pause("the kernel before");
}

void let_next_start() {
  here->lets_next = true;
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
  Gate& gate = here->gates[static_cast<size_t>(barrier)];
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
  here->barriers[at] = Barrier{};
  here->barriers[at].count = count;
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
  here->copies.push_back(std::move(made));
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
