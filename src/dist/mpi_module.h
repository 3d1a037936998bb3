// What libqkv_mpi.so gives: MPI behind plain functions. The program loads it under mpirun only, so it starts where there
// is no MPI; the module knows nothing of the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qkv {

struct MpiPart {
  std::byte* data = nullptr;
  size_t size = 0;
};

struct MpiFunctions {
  void (*init)(int* rank, int* size);
  void (*finalize)();
  void (*abort)(int code);
  void (*barrier)();
  void (*all_gather)(uint64_t mine, uint64_t* all);
  // send[r] goes to rank r, receive[r] comes from it; not to itself.
  void (*exchange)(const MpiPart* send, const MpiPart* receive, int rank, int size);
};

inline constexpr const char *kMpiModule = "libqkv_mpi.so", *kMpiSymbol = "qkv_mpi_functions";

}  // namespace qkv

extern "C" const qkv::MpiFunctions qkv_mpi_functions;
