// How much memory a piece of code takes from operator new at its worst.
#pragma once

#include <cstddef>

namespace qkv::test {

// The most bytes that were held at once since start_counting, beyond what was held then. One thread at a time.
void start_counting();
size_t peak_bytes();

}  // namespace qkv::test
