// Communication between the processes (ranks) that train one model together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "core/storage.h"

namespace qkv {

class Comm {
 public:
  virtual ~Comm() = default;
  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Ends the job on every rank: this one has failed, and the others would wait for it.
  virtual void abort_all() = 0;

  // Collectives: all ranks must call them in the same order.
  virtual void barrier() = 0;
  // The bytes of every rank, in rank order; sizes may differ.
  virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) = 0;
  // send[r] goes to rank r, receive[r] comes from it. Both sides know the sizes.
  virtual void exchange(std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) = 0;
  // The same in the memory of a device. Through the host, unless the ranks have a faster way.
  virtual void exchange_on(Device& device, std::span<const std::span<const std::byte>> send,
                           std::span<const std::span<std::byte>> receive);
  // Runs what waits for the other ranks by other means; as in a collective, a wait that is too long ends the job.
  virtual void watched(const char* op, FunctionRef<void()> wait);
};

// A single process.
Comm& self_comm();

// All processes started by mpirun, else a single process; an Error if there are several but no MPI. A rank that waits
// longer than QKV_HANG_SECONDS (600) for the others logs the operation and aborts the job.
Comm& world_comm();

// The same ranks, with what is in the memory of GPUs sent from GPU to GPU by NCCL, which is loaded when it is asked for.
// Every rank needs a GPU of its own. Null, with the reason, where that cannot be; all ranks get the same answer.
// Waits for the other GPUs are watched like those for the ranks.
std::unique_ptr<Comm> nccl_comm(Comm& ranks, Device& device, std::string& why);

}  // namespace qkv
