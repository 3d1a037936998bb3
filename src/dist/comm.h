// Processes that train one model together: who they are, and how bytes get from one to another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace qkv {

class Comm {
 public:
  virtual ~Comm() = default;
  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Ends every rank: one of them cannot go on, and the others would wait for it.
  virtual void end_all() = 0;

  // Each of these is called by all ranks alike.
  virtual void barrier() = 0;
  // What every rank has, in the order of the ranks; it may differ in size.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;
  // send[r] goes to rank r, receive[r] comes from it. Both sides know the sizes.
  virtual void exchange(std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) = 0;
};

// Alone.
Comm& self_comm();

// All processes that mpirun started, if this program was built with MPI and was started by it; else alone. A rank that
// waits longer than QKV_HANG_SECONDS (600) for the others says where and ends the job.
Comm& world_comm();

}  // namespace qkv
