// The GPU: its memory, one stream of work, and the first error that happened on it.
#pragma once

#include "core/storage.h"

namespace qkv::kernels::cuda {

Device& device();  // Error where there is none

int multiprocessors();

bool recording() noexcept;  // this thread's launches go into a recording of a pass, not to the device

// Kernels never throw. The first failed launch or call is kept, and the next download throws it.
void note_launch() noexcept;  // looks at the last launch

}  // namespace qkv::kernels::cuda
