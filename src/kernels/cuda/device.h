// The GPU: its memory, one stream of work, and the first error that happened on it.
#pragma once

#include "core/storage.h"

namespace qkv::kernels::cuda {

Device& device();  // Error where there is none

int multiprocessors();
int64_t most_shared_bytes();  // of a block that asks for them
bool hopper();                // wgmma, the copy engine and early launches; other GPUs take the general forms

bool recording() noexcept;       // kernels are kept, not run
void stop_recording() noexcept;  // runs what was kept; to be called before what cannot be done again

// Kernels that go over many rows take turns: one from the first to the last, the next from the last to the first, so that it
// begins with what the one before has left in the shared cache. Whether this one goes back; not where its sums have an order.
bool goes_back(bool may = true) noexcept;

// Kernels never throw. The first failed launch or call is kept, and the next download throws it.
void note_launch() noexcept;  // looks at the last launch

}  // namespace qkv::kernels::cuda
