// The instructions that C++ has no word for, each as a function, and the memory that a launch gives a block: no other
// file has assembly or declares such memory, but wgmma.h. Barriers, and what lies in shared memory, go by their 32-bit
// addresses there. Hopper's own come last; a kernel that also exists for other GPUs calls, of those, only
// let_next_start and wait_for_last.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace qkv::kernels::cuda {

// Shared memory.

// What a launch asks for beyond what the kernel itself declares. A kernel uses one alignment. The compiler is told
// where it lies, since it looks for that before it joins functions.
template <int kAlignment = 16>
__device__ __forceinline__ unsigned char* dynamic_shared() {
  static_assert(kAlignment == 16 || kAlignment == 128 || kAlignment == 1024);
  unsigned char* start;
  if constexpr (kAlignment == 16) {
    extern __shared__ __align__(16) unsigned char shared_by_16[];
    start = shared_by_16;
  } else if constexpr (kAlignment == 128) {
    extern __shared__ __align__(128) unsigned char shared_by_128[];
    start = shared_by_128;
  } else {
    extern __shared__ __align__(1024) unsigned char shared_by_1024[];
    start = shared_by_1024;
  }
  __builtin_assume(__isShared(start));
  return start;
}
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// The compiler may move these reads past writes by ordinary code, but not past the other functions here.
__device__ __forceinline__ uint32_t shared_byte(uint32_t at) {
  uint32_t v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ int shared_int(uint32_t at) {
  int v;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ uint32_t shared_uint(uint32_t at) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ int2 shared_int2(uint32_t at) {
  int2 v;
  asm volatile("ld.shared.v2.s32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  return v;
}
__device__ __forceinline__ uint2 shared_uint2(uint32_t at) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  return v;
}
__device__ __forceinline__ uint4 shared_uint4(uint32_t at) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  return v;
}
__device__ __forceinline__ float2 shared_float2(uint32_t at) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
  return v;
}
__device__ __forceinline__ float4 shared_float4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
  return v;
}

__device__ __forceinline__ void put_shared(uint32_t at, int v) {
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ __forceinline__ void put_shared(uint32_t at, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ __forceinline__ void put_shared(uint32_t at, int2 v) {
  asm volatile("st.shared.v2.s32 [%0], {%1, %2};" ::"r"(at), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ void put_shared(uint32_t at, float2 v) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v.x), "f"(v.y) : "memory");
}
__device__ __forceinline__ void put_shared(uint32_t at, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// Copies into shared memory while the thread goes on. end_of_chunks() ends a group of them.

// The first `bytes` of a chunk of kBytes, the rest zeros; with none, `from` is not read.
template <int kBytes>
__device__ __forceinline__ void fetch_chunk(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes)
               : "memory");
}
template <int kBytes>
__device__ __forceinline__ void fetch_chunk(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes) : "memory");
}
// 16 bytes past the cache of the multiprocessor; zeros if there are none.
__device__ __forceinline__ void fetch_chunk_past_cache(uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void end_of_chunks() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// All of this thread's chunks are there but those before the last kGroups ends.
template <int kGroups>
__device__ __forceinline__ void wait_for_chunks() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}
// Also those that no end followed.
__device__ __forceinline__ void wait_for_all_chunks() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// Brings a line as far as the cache that all multiprocessors share.
__device__ __forceinline__ void prefetch(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}

// Barriers of some of a block's threads, by number; 0 is __syncthreads'. A warp's threads come together.
template <int kBarrier, int kThreads>
__device__ __forceinline__ void meet() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
template <int kThreads>
__device__ __forceinline__ void meet(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// Here they may come one by one.
template <int kThreads>
__device__ __forceinline__ void meet_singly(int barrier) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// The same; whether `found` is not 0 in any of them.
template <int kThreads>
__device__ __forceinline__ bool meet_and_ask(int barrier, uint32_t found) {
  int any;
  asm volatile(
      "{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nbarrier.cta.red.or.pred q, %2, %3, p;\nselp.s32 %0, 1, 0, q;\n}\n"
      : "=r"(any)
      : "r"(found), "r"(barrier), "n"(kThreads)
      : "memory");
  return any != 0;
}

// Matrices of 8 x 8 numbers of two bytes as a warp has them: lane 4 r + c has columns 2 c and one more of row r. Four
// at a time, the rows of matrix i at the addresses that lanes 8 i ... have.
__device__ __forceinline__ void read_fragments(uint32_t (&v)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void read_fragments_transposed(uint32_t (&v)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ uint32_t transpose(uint32_t x) {  // of one matrix
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// d += a b by the tensor core, a warp's 16 x 8: of bf16 over 16 columns, of signed bytes over 32 or 16.
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bytes(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bytes(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(b));
}

// Arithmetic.

// By one instruction of the multi-function unit: 2^x within 2^-22, 1 / x within 1 ulp; what is subnormal is zero.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Byte i is the one of x that digit i of `select` names, 4 to 7: zero; plus 8: its top bit eight times.
__device__ __forceinline__ uint32_t permute_bytes(uint32_t x, uint32_t select) {
  uint32_t y;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(y) : "r"(x), "r"(select));
  return y;
}
// Two products of bf16. Two operations of C++ on the halves might be joined with what follows.
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}

// No instruction at all, a word to the compiler.

// Numbers are neither read nor written across this point, nor is memory.
template <int N>
__device__ __forceinline__ void hold(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}
// Keeps a number in its register: where it came from is forgotten.
__device__ __forceinline__ void keep(float (&x)[4]) {
  asm volatile("" : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]));
}
__device__ __forceinline__ void keep(int& x) {
  asm volatile("" : "+r"(x));
}
template <class T>
__device__ __forceinline__ void keep(T*& x) {
  asm volatile("" : "+l"(x));
}

// Programmatic dependent launch (launch.h); elsewhere than on Hopper nothing.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_last() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Hopper's: barriers in shared memory, which count arrivals and the bytes of copies.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
// After all barrier_init(), by the same thread: the copy engine sees them.
__device__ __forceinline__ void fence_for_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}\n" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

// The bulk copy engine: boxes of a tensor into shared memory, laid out as its map says.
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Column x, row y of matrix z of the map's stack; what lies outside of it arrives as zeros.
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap* map, int x, int y, int z, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}
// The same of what is read once: it is the first to leave the cache that all share.
__device__ __forceinline__ uint64_t read_once() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap* map, int x, int y, int z, uint32_t barrier,
                                          uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, "
      "%4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(policy)
      : "memory");
}
// Bytes that lie together; both ends and the count are multiples of 16.
__device__ __forceinline__ void load_bytes(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
// The way back, of what ordinary stores wrote before fence_for_copies() and a barrier. wait_for_copies_out<N>(): all
// that this thread sent has been read, but for the last N.
__device__ __forceinline__ void store_bytes(void* to, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to),
               "r"(from), "r"(bytes)
               : "memory");
}
template <int N>
__device__ __forceinline__ void wait_for_copies_out() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
// What the thread wrote to shared memory is seen by the copy engine and by wgmma.
__device__ __forceinline__ void fence_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Four matrices of 8 x 8, as the tensor core leaves them, to rows in shared memory.
__device__ __forceinline__ void write_fragments(uint32_t at, const uint32_t (&v)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]),
               "r"(v[2]), "r"(v[3])
               : "memory");
}

// Around wgmma.h's products, which run while the warpgroup goes on. wgmma_wait<N>(): all committed are done but for the
// last N.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// From here on each thread of the warpgroup has kCount registers: takes what others gave up, or gives up.
template <int kCount>
__device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

}  // namespace qkv::kernels::cuda
