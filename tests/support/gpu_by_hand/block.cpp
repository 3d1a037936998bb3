#include "block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "block_state.h"
#include "cuda_runtime_api.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace gpu_by_hand {

Block* here = nullptr;
Thread* now = nullptr;
std::mt19937 shuffler;

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

namespace {

namespace context = boost::context::detail;

constexpr size_t kStackBytes = 256 << 10;

// All of it belongs to who holds `running`.
std::mutex running;
std::vector<std::shared_ptr<Block>> spare;
context::fcontext_t scheduler = nullptr;
alignas(1024) unsigned char shared[kMostShared];

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

}  // namespace

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

namespace {

void thread_main(context::transfer_t from) {
  scheduler = from.fctx;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
#endif
  for (;;) {
    here->kernel->body();
    leave();
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

}  // namespace gpu_by_hand
