// A GPU in software: blocks run one after the other, the threads of a block as fibers that change only where they meet or wait.
// What is asynchronous on a GPU happens as late as it may: copies and products when somebody waits for them and nothing else
// can go on, kernels when the host waits for the stream. So a wait that is missing shows. A kernel that may start while the one
// before still works does so in a few of its blocks (begin).
//
// QKV_GPU_ORDER=backward: the last thread that can go on goes on first, and the copy engine's copies come at once: so what is
// overwritten while somebody still reads it shows. A number: any of both, by lot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

namespace gpu_by_hand {

inline constexpr unsigned kAllLanes = 0xffffffffU;
inline constexpr int kWarpSize = 32, kMostThreads = 1024, kProcessors = 132;
inline constexpr uint32_t kMostShared = 232448, kSharedWithoutAsking = 48 << 10;

struct Grid {
  unsigned blocks[3], threads;
  uint32_t shared_bytes;
  const char* name;
};
// body() in every thread of every block.
struct Block;
struct Kernel {
  Grid grid;
  std::function<void()> body;
  bool early = false;  // may start before the kernel before has ended, and every block waits for it
  std::vector<std::shared_ptr<Block>> begun;  // blocks that did
};
// Runs some blocks up to where they wait for the kernel before. Whether the next kernel may start then too.
bool begin(Kernel& kernel);
void finish(Kernel& kernel);

// --- of the thread that runs -----------------------------------------------------------------------------------------

int lane();
// Memory of the block: addresses are bytes from where its dynamic part begins.
unsigned char* shared_memory();
uint32_t dynamic_shared_bytes();
uint32_t shared_address(const void* p);
unsigned char* shared_at(uint32_t address);

// The lanes of `mask` meet. Each brings a record; the last to come calls all(records, which lanes have one), then they go on.
using Together = void (*)(void* const* records, unsigned lanes);
void meet_lanes(unsigned mask, void* mine, Together all);
// The threads of the block meet at one of sixteen barriers, `threads` of them or (0) all that have not ended; how many brought
// `true`.
int meet_threads(int barrier, int threads, bool brings);
void meet_warpgroup(int warpgroup);

// Barriers in shared memory that count arrivals and bytes.
void barrier_init(uint32_t at, uint32_t count);
void barrier_arrive(uint32_t at, uint32_t bytes_to_come);
void barrier_wait(uint32_t at, uint32_t parity);
// A copy that adds so many bytes to a barrier when it is done.
void copy_later(std::function<void()> copy, uint32_t barrier, uint32_t bytes);

int thread_index();
// The kernel before has ended, and what it wrote is seen.
void wait_for_last();
void let_next_start();

// Copies of one thread, which it waits for by groups.
enum class Work { copies_in, copies_out };
void add_work(Work kind, std::function<void()> work);
void end_group(Work kind);
void wait_groups(Work kind, size_t but_the_last);

[[noreturn]] void fault(const char* what);

}  // namespace gpu_by_hand
