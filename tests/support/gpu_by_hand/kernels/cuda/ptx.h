// The instructions of src/kernels/cuda/ptx.h in software.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "instructions.h"

namespace qkv::kernels::cuda {

namespace by_hand = gpu_by_hand;

template <int kAlignment = 16>
unsigned char* dynamic_shared() {
  return by_hand::shared_memory();
}
inline uint32_t shared_address(const void* p) {
  return by_hand::shared_address(p);
}

template <class T>
T shared_value(uint32_t at) {
  if (at % sizeof(T) != 0) by_hand::fault("a read of shared memory is not aligned");
  T v;
  std::memcpy(&v, by_hand::shared_at(at), sizeof(T));
  return v;
}
inline uint32_t shared_byte(uint32_t at) {
  return shared_value<uint8_t>(at);
}
inline int shared_int(uint32_t at) {
  return shared_value<int>(at);
}
inline uint32_t shared_uint(uint32_t at) {
  return shared_value<uint32_t>(at);
}
inline int2 shared_int2(uint32_t at) {
  return shared_value<int2>(at);
}
inline uint2 shared_uint2(uint32_t at) {
  return shared_value<uint2>(at);
}
inline uint4 shared_uint4(uint32_t at) {
  return shared_value<uint4>(at);
}
inline float2 shared_float2(uint32_t at) {
  return shared_value<float2>(at);
}
inline float4 shared_float4(uint32_t at) {
  return shared_value<float4>(at);
}
template <class T>
void put_shared(uint32_t at, T v) {
  if (at % sizeof(T) != 0) by_hand::fault("a write to shared memory is not aligned");
  std::memcpy(by_hand::shared_at(at), &v, sizeof(T));
}

template <int kBytes>
void fetch_chunk(uint32_t to, const void* from, int bytes = kBytes) {
  by_hand::fetch(to, from, kBytes, bytes);
}
inline void fetch_chunk_past_cache(uint32_t to, const void* from, bool there) {
  by_hand::fetch(to, from, 16, there ? 16 : 0);
}
inline void end_of_chunks() {
  by_hand::end_group(by_hand::Work::copies_in);
}
template <int kGroups>
void wait_for_chunks() {
  by_hand::wait_groups(by_hand::Work::copies_in, kGroups);
}
inline void wait_for_all_chunks() {
  end_of_chunks();
  wait_for_chunks<0>();
}
inline void prefetch(const void*) {}

template <int kThreads>
void meet(int barrier) {
  by_hand::meet_threads(barrier, kThreads, false);
}
template <int kBarrier, int kThreads>
void meet() {
  by_hand::meet_threads(kBarrier, kThreads, false);
}
template <int kThreads>
void meet_singly(int barrier) {
  by_hand::meet_threads(barrier, kThreads, false);
}
template <int kThreads>
bool meet_and_ask(int barrier, uint32_t found) {
  return by_hand::meet_threads(barrier, kThreads, found != 0) > 0;
}

inline void read_fragments(uint32_t (&v)[4], uint32_t at) {
  by_hand::read_fragments(v, at, false);
}
inline void read_fragments_transposed(uint32_t (&v)[4], uint32_t at) {
  by_hand::read_fragments(v, at, true);
}
inline uint32_t transpose(uint32_t x) {
  return by_hand::transpose(x);
}
inline void write_fragments(uint32_t at, const uint32_t (&v)[4]) {
  by_hand::write_fragments(at, v);
}

inline void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  by_hand::mma(d, a, b0, b1);
}
inline void mma_bytes(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  by_hand::mma_bytes(d, a, b0, b1, 32);
}
inline void mma_bytes(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  by_hand::mma_bytes(d, {a0, a1, 0, 0}, b, 0, 16);
}

// Exact to the last bit or two, where the GPU's are less so: a GPU's bits are others here.
inline float without_subnormals(float x) {
  return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
}
inline float fast_exp2(float x) {
  return without_subnormals(std::exp2(without_subnormals(x)));
}
inline float fast_inverse(float x) {
  return without_subnormals(1 / without_subnormals(x));
}
inline uint32_t permute_bytes(uint32_t x, uint32_t select) {
  return __byte_perm(x, 0, select);
}
inline uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  return by_hand::multiply_pairs(a, b);
}

template <int N>
void hold(float (&)[N]) {}
inline void keep(float (&)[4]) {}
inline void keep(int&) {}
template <class T>
void keep(T*&) {}

inline void let_next_start() {
  by_hand::let_next_start();
}
inline void wait_for_last() {
  by_hand::wait_for_last();
}

inline void barrier_init(uint32_t barrier, uint32_t count) {
  by_hand::barrier_init(barrier, count);
}
inline void fence_for_barriers() {}
inline void barrier_expect(uint32_t barrier, uint32_t bytes) {
  by_hand::barrier_arrive(barrier, bytes);
}
inline void barrier_arrive(uint32_t barrier) {
  by_hand::barrier_arrive(barrier, 0);
}
inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  by_hand::barrier_wait(barrier, parity);
}

inline void prefetch_map(const CUtensorMap*) {}
inline uint64_t read_once() {
  return 0;
}
inline void load_tile(uint32_t to, const CUtensorMap* map, int x, int y, int z, uint32_t barrier, uint64_t = 0) {
  by_hand::load_tile(to, *map, {x, y, z}, barrier);
}
inline void load_bytes(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  by_hand::load_bytes(to, from, bytes, barrier);
}
inline void store_bytes(void* to, uint32_t from, int bytes) {
  by_hand::store_bytes(to, from, bytes);
}
template <int N>
void wait_for_copies_out() {
  by_hand::wait_groups(by_hand::Work::copies_out, N);
}
inline void fence_for_copies() {}

inline void wgmma_fence() {}
inline void wgmma_commit() {
  by_hand::end_products();
}
template <int N>
void wgmma_wait() {
  by_hand::wait_products(N);
}
template <int kCount>
void more_registers() {}
template <int kCount>
void fewer_registers() {}

}  // namespace qkv::kernels::cuda
