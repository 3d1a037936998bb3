// Dispatch of rows to experts and back, f32 and bf16. Every sorted row belongs to one row of the batch, so threads take
// rows of the batch and share no output.
#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {
namespace {

// A row as f32: in place, or widened into `scratch`.
const float* as_f32(FloatRow row, int64_t count, float* scratch, const IsaKernels& isa) {
  if (!row.bf16) return static_cast<const float*>(row.data);
  isa.widen(scratch, static_cast<const uint16_t*>(row.data), count);
  return scratch;
}

}  // namespace

void dispatch(const Exec& exec, const DispatchArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.x})) return ref::dispatch(ref::Split(*exec.pool), a);
  const RowsOf y(a.y), x(a.x);
  const auto* order = a.order.as<int32_t>();
  over_rows(exec, a.y.rows(), a.y.cols(), [&](Range rows, int) {
    for (int64_t i = rows.begin; i < rows.end; ++i) isa.scaled_row(y(i), x(order[i] / a.top_k), 1, false, a.y.cols());
  });
}

void combine(const Exec& exec, const CombineArgs& a, const IsaKernels& isa) noexcept {
  const int64_t cols = a.y.cols(), top_k = a.slots.dim(1);
  if (!all_float({&a.y, &a.z, &a.weights}) || cols * size_of(DType::f32) > exec.scratch.dim(1)) {
    return ref::combine(ref::Split(*exec.pool), a);
  }
  const RowsOf y(a.y), z(a.z);
  const auto* slots = a.slots.as<int32_t>();
  over_rows(exec, a.y.rows(), cols * top_k, [&](Range rows, int thread) {
    float* sum = scratch_of(exec, thread);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const auto weights = ref::In<float>::row(a.weights, r);
      for (int64_t s = 0; s < top_k; ++s) {
        isa.scaled_row({sum}, z(slots[r * top_k + s]), weights ? weights[s] : 1, s > 0, cols);
      }
      isa.scaled_row(y(r), {sum}, 1, a.add, cols);
    }
  });
}

void combine_backward(const Exec& exec, const CombineBackwardArgs& a, const IsaKernels& isa) noexcept {
  const int64_t cols = a.dy.cols(), top_k = a.slots.dim(1);
  if (!all_float({&a.dy, &a.z, &a.weights, &a.dz.tensor, &a.dweights.tensor}) ||
      2 * cols * size_of(DType::f32) > exec.scratch.dim(1)) {
    return ref::combine_backward(ref::Split(*exec.pool), a);
  }
  const RowsOf dy(a.dy), z(a.z), dz(a.dz.tensor);
  const auto* slots = a.slots.as<int32_t>();
  over_rows(exec, a.dy.rows(), cols * top_k, [&](Range rows, int thread) {
    float* scratch = scratch_of(exec, thread);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const auto weights = ref::In<float>::row(a.weights, r);
      for (int64_t s = 0; s < top_k; ++s) {
        const int64_t slot = slots[r * top_k + s];
        if (a.dz) isa.scaled_row(dz(slot), dy(r), weights[s], a.dz.add, cols);
        if (!a.dweights) continue;
        float dot = 0;
        isa.matmul_nt_f32({.x = as_f32(dy(r), cols, scratch, isa),
                           .w = as_f32(z(slot), cols, scratch + cols, isa),
                           .y = &dot,
                           .rows = 1,
                           .outputs = 1,
                           .inner = cols});
        ref::Out<float>::row(a.dweights.tensor, r).put(s, dot, a.dweights.add);
      }
    }
  });
}

}  // namespace qkv::kernels::cpu
