// layer_norm and rms_norm on f32 and bf16 rows. Each row belongs to one thread; each column of dw and db belongs to one
// thread that adds the rows in order.
#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {
namespace {

// Adds all rows to the columns of dw and db that one thread owns.
void add_columns(NormDwCall call, const LayerNormBackwardArgs& a, Range cols, const IsaKernels& isa) {
  const RowsOf dy(a.dy), x(a.x);
  const float *mean = f32_or_null(a.mean), *rstd = a.rstd.as<float>();
  const int64_t rows = a.x.rows();
  call.count = cols.end - cols.begin;
  for (int64_t r = 0; r < rows; r += call.rows) {
    call.rows = static_cast<int>(std::min<int64_t>(NormDwCall::kRows, rows - r));
    for (int i = 0; i < call.rows; ++i) {
      call.dy[i] = dy(r + i, cols.begin);
      call.x[i] = x(r + i, cols.begin);
      call.mean[i] = mean != nullptr ? mean[r + i] : 0;
      call.rstd[i] = rstd[r + i];
    }
    isa.norm_dw_rows(call);
  }
}

// dw and db; either may be absent.
void weight_gradients(const Exec& exec, const Grad& dw, const Grad& db, const LayerNormBackwardArgs& a,
                      const IsaKernels& isa) {
  if (!dw && !db) return;
  over_thread_ranges(exec, a.x.cols(), 16, [&](Range cols, int thread) {
    float* unused = scratch_of(exec, thread);  // receives dw if only db is wanted
    const auto start = [&](const Grad& g) {
      float* sums = g.tensor.as<float>() + cols.begin;
      if (!g.add) std::fill(sums, sums + (cols.end - cols.begin), 0.0F);
      return sums;
    };
    NormDwCall call{.dw = unused, .db = db ? start(db) : nullptr};
    if (dw) call.dw = start(dw);
    add_columns(call, a, cols, isa);
  });
}

void input_gradients(const Exec& exec, const LayerNormBackwardArgs& a, const IsaKernels& isa) {
  const RowsOf dx(a.dx.tensor), dy(a.dy), x(a.x);
  const float* mean = f32_or_null(a.mean);
  over_rows(exec, a.x.rows(), a.x.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      isa.norm_dx_row({.dx = dx(r),
                       .dy = dy(r),
                       .x = x(r),
                       .w = f32_or_null(a.w),
                       .count = a.x.cols(),
                       .offset = static_cast<float>(a.offset),
                       .mean = mean != nullptr ? mean[r] : 0,
                       .rstd = a.rstd.as<float>()[r],
                       .centred = mean != nullptr,
                       .add = a.dx.add});
    }
  });
}

}  // namespace

void layer_norm(const Exec& exec, const LayerNormArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.y}) || !all_f32({&a.w, &a.b, &a.mean, &a.rstd})) {
    return ref::layer_norm(ref::Split(*exec.pool), a);
  }
  const RowsOf x(a.x), y(a.y);
  over_rows(exec, a.x.rows(), a.x.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      NormCall call{.y = y(r),
                    .x = x(r),
                    .w = f32_or_null(a.w),
                    .b = f32_or_null(a.b),
                    .count = a.x.cols(),
                    .eps = static_cast<float>(a.eps),
                    .offset = static_cast<float>(a.offset),
                    .centred = true};
      isa.norm_row(call);
      a.mean.as<float>()[r] = call.mean;
      a.rstd.as<float>()[r] = call.rstd;
    }
  });
}

void rms_norm(const Exec& exec, const RmsNormArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.y}) || !all_f32({&a.w, &a.r})) return ref::rms_norm(ref::Split(*exec.pool), a);
  const RowsOf x(a.x), y(a.y);
  over_rows(exec, a.x.rows(), a.x.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      NormCall call{.y = y(r),
                    .x = x(r),
                    .w = f32_or_null(a.w),
                    .count = a.x.cols(),
                    .eps = static_cast<float>(a.eps),
                    .offset = static_cast<float>(a.offset)};
      isa.norm_row(call);
      a.r.as<float>()[r] = call.rstd;
    }
  });
}

void layer_norm_backward(const Exec& exec, const LayerNormBackwardArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.dy, &a.dx.tensor}) || !all_f32({&a.w, &a.mean, &a.rstd, &a.dw.tensor, &a.db.tensor}) ||
      a.x.cols() > exec.scratch.dim(1) / size_of(DType::f32)) {
    return ref::layer_norm_backward(ref::Split(*exec.pool), a);
  }
  if (a.dx) input_gradients(exec, a, isa);
  weight_gradients(exec, a.dw, a.db, a, isa);
}

void rms_norm_backward(const Exec& exec, const RmsNormBackwardArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.dy, &a.dx.tensor}) || !all_f32({&a.w, &a.r, &a.dw.tensor})) {
    return ref::rms_norm_backward(ref::Split(*exec.pool), a);
  }
  // As layer_norm, without a mean.
  const LayerNormBackwardArgs same{.dx = a.dx, .dy = a.dy, .x = a.x, .w = a.w, .rstd = a.r, .offset = a.offset};
  if (a.dx) input_gradients(exec, same, isa);
  weight_gradients(exec, a.dw, {}, same, isa);
}

}  // namespace qkv::kernels::cpu
