// Peak memory that code allocates with operator new.
#pragma once

#include <cstddef>

namespace qkv::test {

// The peak since start_counting, beyond what was allocated then. One thread at a time.
void start_counting();
size_t peak_bytes();

}  // namespace qkv::test
