// The memory that a piece of work takes at most.
#pragma once

#include <cstddef>

#include "base/function_ref.h"

namespace qkv::test {

// Runs the work in a process of its own and returns how far its resident memory rose, in bytes. A qkv::Error ends the
// work early; `refused`, if given, says so. With a sanitizer, which takes memory of its own, the result is 0.
size_t peak_memory(FunctionRef<void()> work, bool* refused = nullptr);

}  // namespace qkv::test
