// libqkv_mpi.so: the only file that is compiled and linked with MPI.
#include "dist/mpi_module.h"

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace qkv {
namespace {

constexpr size_t kPiece = size_t{1} << 30;  // MPI counts in int

void init(int* rank, int* size) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
}

void exchange(const MpiPart* send, const MpiPart* receive, int rank, int size) {
  std::vector<MPI_Request> waiting;
  const auto each_piece = [&](const MpiPart* parts, auto start) {
    for (int r = 0; r < size; ++r) {
      for (size_t at = 0; r != rank && at < parts[r].size; at += kPiece) {
        start(parts[r].data + at, static_cast<int>(std::min(kPiece, parts[r].size - at)), r, &waiting.emplace_back());
      }
    }
  };
  each_piece(receive, [](void* data, int bytes, int from, MPI_Request* request) {
    MPI_Irecv(data, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, request);
  });
  each_piece(send, [](void* data, int bytes, int to, MPI_Request* request) {
    MPI_Isend(data, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, request);
  });
  MPI_Waitall(static_cast<int>(waiting.size()), waiting.data(), MPI_STATUSES_IGNORE);
}

}  // namespace
}  // namespace qkv

extern "C" __attribute__((visibility("default"))) const qkv::MpiFunctions qkv_mpi_functions{
    .init = qkv::init,
    .finalize = [] { MPI_Finalize(); },
    .abort = [](int code) { MPI_Abort(MPI_COMM_WORLD, code); },
    .barrier = [] { MPI_Barrier(MPI_COMM_WORLD); },
    .all_gather = [](uint64_t mine,
                     uint64_t* all) { MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD); },
    .exchange = qkv::exchange};
