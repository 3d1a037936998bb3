// Embeddings on f32 and bf16 rows, and the scatter of keys and values into pages. A column of the gradient belongs to
// one thread that adds the rows in order, so repeated ids add up in the same order every time.
#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {

void embedding(const Exec& exec, const EmbeddingArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.table})) return ref::embedding(ref::Split(*exec.pool), a);
  const RowsOf y(a.y), table(a.table);
  const auto* ids = a.ids.as<int32_t>();
  over_rows(exec, a.y.rows(), a.y.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      isa.scaled_row(y(r), table(ids[r]), static_cast<float>(a.factor), a.add, a.y.cols());
    }
  });
}

void embedding_backward(const Exec& exec, const EmbeddingBackwardArgs& a, const IsaKernels& isa) noexcept {
  const Tensor& dtable = a.dtable.tensor;
  if (!all_f32({&dtable}) || !all_float({&a.dy})) return ref::embedding_backward(ref::Split(*exec.pool), a);
  const RowsOf sums(dtable), dy(a.dy);
  const auto* ids = a.ids.as<int32_t>();
  over_thread_ranges(exec, dtable.cols(), 16, [&](Range cols, int) {
    const int64_t count = cols.end - cols.begin;
    for (int64_t v = 0; v < dtable.dim(0) && !a.dtable.add; ++v) {
      float* row = dtable.as<float>() + v * dtable.stride(0) + cols.begin;
      std::fill(row, row + count, 0.0F);
    }
    for (int64_t r = 0; r < a.dy.rows(); ++r) {
      isa.scaled_row(sums(ids[r], cols.begin), dy(r, cols.begin), static_cast<float>(a.factor), true, count);
    }
  });
}

void scatter_rows(const Exec& exec, const ScatterRowsArgs& a, const IsaKernels& isa) noexcept {
  if (!is_float(a.x) || !(is_float(a.y) || a.scales.defined())) return ref::scatter_rows(ref::Split(*exec.pool), a);
  const RowsOf x(a.x);
  const auto* slots = a.slots.as<int32_t>();
  const int64_t rows_each = a.x.dim(0) > 0 ? a.x.rows() / a.x.dim(0) : 0, size = size_of(a.y.dtype());
  over_rows(exec, a.x.rows(), a.x.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int64_t to = slots[r / rows_each] * rows_each + r % rows_each;
      std::byte* y = a.y.data() + ref::row_offset(a.y, to) * size;
      if (a.scales.defined()) {
        a.scales.as<float>()[to] = isa.put_bytes(reinterpret_cast<int8_t*>(y), x(r), a.x.cols());
      } else {
        isa.scaled_row({y, a.y.dtype() == DType::bf16}, x(r), 1, false, a.x.cols());
      }
    }
  });
}

}  // namespace qkv::kernels::cpu
