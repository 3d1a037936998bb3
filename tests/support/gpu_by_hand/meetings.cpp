// Where threads of a block meet and wait: lanes, barriers of threads, barriers in shared memory, copies.
#include <utility>

#include "block_state.h"
#include "tensor_cores.h"

namespace gpu_by_hand {
namespace {

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

}  // namespace

void finish(const Copy& copy) {
  copy.run();
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= copy.bytes;
  pass_if_complete(barrier);
}

void leave() {
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
