#include "io/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace qkv::test {
namespace {

std::atomic<int64_t> held{0}, most{0};

void* counted(size_t size) {
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = held += static_cast<int64_t>(::malloc_usable_size(memory));
  most = std::max(most.load(), now);
  return memory;
}

void released(void* memory) {
  if (memory == nullptr) return;
  held -= static_cast<int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

int64_t at_start = 0;

}  // namespace

void start_counting() {
  at_start = held;
  most = at_start;
}

size_t peak_bytes() {
  return static_cast<size_t>(most - at_start);
}

}  // namespace qkv::test

// NOLINTBEGIN: the whole program's operator new
void* operator new(size_t size) {
  return qkv::test::counted(size);
}
void* operator new[](size_t size) {
  return qkv::test::counted(size);
}
void operator delete(void* memory) noexcept {
  qkv::test::released(memory);
}
void operator delete[](void* memory) noexcept {
  qkv::test::released(memory);
}
void operator delete(void* memory, size_t) noexcept {
  qkv::test::released(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  qkv::test::released(memory);
}
// NOLINTEND
