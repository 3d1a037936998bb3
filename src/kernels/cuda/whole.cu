// fill, copy, add, sums and checks over whole tensors.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace qkv::kernels::cuda {
namespace {

template <class R>
void copy_as(const Exec& exec, const CopyArgs& a) {
  const View y(a.y), x(a.x);
  const R factor = static_cast<R>(a.factor);
  const bool add = a.add;
  each_thread(exec, a.y.count(),
              [=] __device__(int64_t i) { y.put(y.element(i), factor * x.get<R>(x.element(i)), add); });
}

template <class R>
void add_as(const Exec& exec, const AddArgs& args) {
  const View y(args.y), a(args.a), b(args.b);
  each_thread(exec, args.y.count(),
              [=] __device__(int64_t i) { y.set(y.element(i), a.get<R>(a.element(i)) + b.get<R>(b.element(i))); });
}

// A sum in double: pieces of 4096 elements by one block each, then the pieces by one block.
constexpr int64_t kPiece = 4096;

template <class Term, class Finish>
void total(const Exec& exec, int64_t count, const Term& term, const Finish& finish) {
  auto* partial = reinterpret_cast<double*>(exec.scratch.data());
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  each_block(exec, pieces, [=] __device__(int64_t piece) {
    double sum = 0;
    for (int64_t i = piece * kPiece + threadIdx.x; i < (piece + 1) * kPiece && i < count; i += kThreads) sum += term(i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[piece] = sum;
  });
  each_block(exec, 1, [=] __device__(int64_t) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < pieces; i += kThreads) sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) finish(sum);
  });
}

// What a check found goes back to the host; integers, so atomics keep it exact.
struct Found {
  unsigned long long count, first;
};
constexpr unsigned long long kNone = ~0ULL;

template <class Check>
Found find(const Exec& exec, int64_t count, const Check& check) {
  stop_recording();  // the host reads
  auto* found = reinterpret_cast<Found*>(exec.scratch.data());
  each_thread(exec, 1, [=] __device__(int64_t) { *found = {0, kNone}; });
  each_thread(exec, count, [=] __device__(int64_t i) {
    if (!check(i)) return;
    atomicAdd(&found->count, 1ULL);
    atomicMin(&found->first, static_cast<unsigned long long>(i));
  });
  Found out{0, kNone};
  if (cudaMemcpyAsync(&out, found, sizeof(out), cudaMemcpyDeviceToHost, stream_of(exec)) != cudaSuccess ||
      cudaStreamSynchronize(stream_of(exec)) != cudaSuccess) {
    note_launch();
    return {0, kNone};
  }
  return out;
}

}  // namespace

void fill(const Exec& exec, const FillArgs& a) noexcept {
  const View y(a.y);
  const double value = a.value;
  each_thread(exec, a.y.count(), [=] __device__(int64_t i) { y.set(y.element(i), value); });
}

void copy(const Exec& exec, const CopyArgs& a) noexcept {
  in_real(a.y, [&](auto r) { copy_as<decltype(r)>(exec, a); });
}

void add(const Exec& exec, const AddArgs& a) noexcept {
  in_real(a.y, [&](auto r) { add_as<decltype(r)>(exec, a); });
}

void sum(const Exec& exec, const SumArgs& a) noexcept {
  const View y(a.y), x(a.x);
  const double factor = a.factor;
  total(
      exec, a.x.count(), [=] __device__(int64_t i) { return x.get<double>(x.element(i)); },
      [=] __device__(double s) { y.set(0, s * factor); });
}

void sum_squares(const Exec& exec, const SumSquaresArgs& a) noexcept {
  const View y(a.y), x(a.x);
  total(
      exec, a.x.count(),
      [=] __device__(int64_t i) {
        const double v = x.get<double>(x.element(i));
        return v * v;
      },
      [=] __device__(double s) { y.put(0, s, true); });
}

void nonfinite(const Exec& exec, const NonfiniteArgs& a) noexcept {
  const View x(a.x);
  const Found found =
      find(exec, a.x.count(), [=] __device__(int64_t i) { return !isfinite(x.get<double>(x.element(i))); });
  *a.count = static_cast<int64_t>(found.count);
  *a.first = found.count == 0 ? -1 : static_cast<int64_t>(found.first);
}

void outside(const Exec& exec, const OutsideArgs& a) noexcept {
  const View ids(a.ids), spans(a.spans);
  const int64_t limit = a.limit, allowed = a.allowed, width = a.spans.defined() ? a.ids.dim(1) : 1;
  const Found found = find(exec, a.ids.count(), [=] __device__(int64_t i) {
    if (spans) {
      const int64_t row = i / width, column = i % width;
      if (column < spans.id(2 * row) || column >= spans.id(2 * row + 1)) return false;
    }
    const int64_t id = ids.id(i);
    return (id < 0 || id >= limit) && id != allowed;
  });
  *a.first = found.count == 0 ? -1 : static_cast<int64_t>(found.first);
}

// The GPU multiplies row-major weights; its table never asks for tiles.
void pack_tiles(const Exec&, const PackTilesArgs&) noexcept {}

}  // namespace qkv::kernels::cuda
