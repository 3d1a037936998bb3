// The GPU: its memory, one stream of work, and the first error that happened on it.
#pragma once

#include "core/storage.h"

namespace qkv::kernels::cuda {

Device& device();  // Error where there is none

int multiprocessors();
bool hopper();  // wgmma, the copy engine and early launches; other GPUs take the general forms

bool recording() noexcept;       // kernels are kept, not run
void stop_recording() noexcept;  // runs what was kept; to be called before what cannot be done again

// Kernels never throw. The first failed launch or call is kept, and the next download throws it.
void note_launch() noexcept;  // looks at the last launch

}  // namespace qkv::kernels::cuda
