// y = x w^T + b and its gradients, for f32 and bf16 operands; other dtypes take the reference loops. Every output is
// one sum in the order isa_kernels.h states, so neither the rows beside it nor the number of threads can change it.
//
//   forward   matmul_nt   rows of x times rows of w, both read in place
//   dx        matmul_nn   dy (f32) times the rows of w
//   dw        matmul_nn   columns of dy times the rows of x, in chunks of rows that are added in order
//
// Instruction sets that multiply bf16 in pairs or tiles: linear_tiles.cpp. The epilogue (isa/epilogue.h) of forward and
// dx runs while their sums are in the L2 cache.
#include "kernels/cpu/linear.h"

#include "base/buffer.h"

namespace qkv::kernels::cpu {
namespace {

// Rows per block: small enough for the L2 cache, large enough to reuse a weight.
constexpr int64_t kRowBlock = 128;
// Sums per block: as many columns as fit beside so many rows.
constexpr int64_t kSums = kRowBlock * 512;
int64_t columns_together(Range rows) {
  constexpr int64_t kTile = 48;  // columns of the widest register tile
  return kSums / std::clamp<int64_t>(rows.end - rows.begin, 1, kRowBlock) / kTile * kTile;
}

void forward_part(const Exec& exec, const LinearArgs& a, const Group& g, const Part& part, const IsaKernels& isa) {
  const Range rows = part.rows, outputs = part.columns;
  float* packed = scratch_of(exec, part.thread);
  float* sums = packed + kMatmulScratch / size_of(DType::f32);
  const EpilogueCall epilogue = epilogue_of(a, g.b);
  const bool direct = writes_directly(epilogue);
  const int64_t widest = direct ? outputs.end - outputs.begin : columns_together(rows);
  for (int64_t first = outputs.begin; first < outputs.end; first += widest) {
    const int64_t width = std::min(widest, outputs.end - first);
    for (int64_t r = rows.begin; r < rows.end; r += kRowBlock) {
      const MatmulNtCall call{.x = at(a.x, r, 0),
                              .w = at(g.w, first, 0),
                              .y = direct ? at_f32(a.y, r, first) : sums,
                              .x_stride = a.x.stride(0),
                              .w_stride = g.w.stride(0),
                              .y_stride = direct ? a.y.stride(0) : width,
                              .rows = std::min(kRowBlock, rows.end - r),
                              .outputs = width,
                              .inner = a.x.cols(),
                              .scratch = packed};
      (a.x.dtype() == DType::f32 ? isa.matmul_nt_f32 : isa.matmul_nt_bf16)(call);
      for (int64_t i = 0; i < call.rows && !direct; ++i)
        isa.epilogue_row(epilogue, r + i, first, sums + i * width, width);
    }
  }
}

// dy of some rows and columns as f32: in place, or widened into `scratch`.
const float* as_f32(const Tensor& t, Range rows, Range columns, float* scratch, int64_t* stride,
                    const IsaKernels& isa) {
  if (t.dtype() == DType::f32) {
    *stride = t.stride(0);
    return at_f32(t, rows.begin, columns.begin);
  }
  *stride = columns.end - columns.begin;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    isa.widen(scratch + (r - rows.begin) * *stride, static_cast<const uint16_t*>(at(t, r, columns.begin)), *stride);
  }
  return scratch;
}

void dx_part(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const Part& part, const IsaKernels& isa) {
  const Range rows = part.rows, columns = part.columns;
  float* scratch = scratch_of(exec, part.thread);
  float *sums = scratch, *wide = sums + kSums;
  const int64_t outputs = a.dy.cols();
  const EpilogueCall epilogue = epilogue_of(a);
  const bool direct = writes_directly(epilogue);
  const int64_t block =
      std::clamp<int64_t>((scratch_floats(exec) - kSums) / std::max<int64_t>(outputs, 1), 1, kRowBlock);
  const int64_t widest = direct ? columns.end - columns.begin : columns_together(rows);
  for (int64_t r = rows.begin; r < rows.end; r += block) {
    const Range some{r, std::min(r + block, rows.end)};
    MatmulNnCall call{.a_inner = 1,
                      .b_stride = g.w.stride(0),
                      .rows = some.end - some.begin,
                      .inner = outputs,
                      .add = direct && a.dx.add};
    call.a = as_f32(a.dy, some, {0, outputs}, wide, &call.a_row, isa);
    for (int64_t first = columns.begin; first < columns.end; first += widest) {
      call.cols = std::min(widest, columns.end - first);
      call.b = at(g.w, 0, first);
      call.y = direct ? at_f32(a.dx.tensor, r, first) : sums;
      call.y_stride = direct ? a.dx.tensor.stride(0) : call.cols;
      (g.w.dtype() == DType::f32 ? isa.matmul_nn_f32 : isa.matmul_nn_bf16)(call);
      for (int64_t i = 0; i < call.rows && !direct; ++i) {
        isa.epilogue_row(epilogue, r + i, first, sums + i * call.cols, call.cols);
      }
    }
  }
}

void dw_part(const Exec& exec, const LinearBackwardArgs& a, const Tensor& dw, Range rows, const Part& part,
             const IsaKernels& isa) {
  const Range outputs = part.columns;
  float* scratch = scratch_of(exec, part.thread);
  const int64_t count = outputs.end - outputs.begin;
  const int64_t block = std::max<int64_t>(scratch_floats(exec) / std::max<int64_t>(count, 1), 1);
  bool add = a.dw.add;
  int64_t r = rows.begin;
  do {  // once even for no rows: the gradient of an unused weight is zero
    const Range some{r, std::min(r + block, rows.end)};
    MatmulNnCall call{.b = at(a.x, r, 0),
                      .y = at_f32(dw, outputs.begin, 0),
                      .a_row = 1,
                      .b_stride = a.x.stride(0),
                      .y_stride = dw.stride(0),
                      .rows = count,
                      .inner = some.end - some.begin,
                      .cols = a.x.cols(),
                      .add = add};
    call.a = as_f32(a.dy, some, outputs, scratch, &call.a_inner, isa);
    (a.x.dtype() == DType::f32 ? isa.matmul_nn_f32 : isa.matmul_nn_bf16)(call);
    add = true;
    r = some.end;
  } while (r < rows.end);
}

void db_part(const LinearBackwardArgs& a, const Tensor& db, Range rows, Range outputs) {
  float* sums = db.as<float>();
  for (int64_t o = outputs.begin; o < outputs.end && !a.db.add; ++o) sums[o] = 0;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const ref::In<float> dy(a.dy, {r});
    for (int64_t o = outputs.begin; o < outputs.end; ++o) sums[o] += dy[o];
  }
}

// Other dtypes: the product by the reference loops, then the epilogue by the kernels of its own.
void linear_fallback(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) {
  const Epilogue& f = a.epilogue;
  LinearArgs product = a;
  product.epilogue = {.residual = f.residual};
  if (f.pre.defined()) product.y = f.pre;
  ref::linear(ref::Split(*exec.pool), product);
  if (f.gate.defined()) return gated(exec, {.y = a.y, .gate = f.gate, .up = product.y, .form = f.form}, isa);
  if (epilogue_of(a, {}).kind != EpilogueCall::Kind::activation) return;
  activation(exec, {.y = a.y, .x = product.y, .act = f.form.act}, isa);
}

void linear_backward_fallback(const Exec& exec, const LinearBackwardArgs& a, const IsaKernels& isa) {
  const InputActivation& o = a.input_act;
  if (!o.pre.defined()) return ref::linear_backward(ref::Split(*exec.pool), a);
  Buffer<std::byte> memory(a.x.count() * size_of(a.x.dtype()));
  LinearBackwardArgs product = a;
  product.input_act = {};
  product.dx = {Tensor(a.x.device(), memory.data(), a.x.dtype(), a.x.shape())};
  ref::linear_backward(ref::Split(*exec.pool), product);
  if (!o.gate.defined()) {
    return activation_backward(exec, {.dx = o.dpre, .dy = product.dx.tensor, .x = o.pre, .act = o.form.act}, isa);
  }
  gated_backward(
      exec, {.dgate = o.dgate, .dup = o.dpre, .dy = product.dx.tensor, .gate = o.gate, .up = o.pre, .form = o.form},
      isa);
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) noexcept {
  if (!a.w.format().plain()) {
    if (!linear_with_blocks(exec, a, isa)) linear_fallback(exec, a, isa);
    return;
  }
  const Epilogue& f = a.epilogue;
  if (!all_float({&a.x, &a.y, &f.gate, &f.pre, &f.residual}) || a.x.dtype() != a.w.dtype()) {
    return linear_fallback(exec, a, isa);
  }
  if (isa.pack_weight != nullptr && on_tiles(exec, isa, {&a.x, &a.w})) return linear_on_tiles(exec, a, isa);
  for_groups(a.groups, a.y.rows(), a.w, a.b, [&](const Group& g, int64_t) {
    over_threads(exec, g.rows, a.y.cols(), [&](const Part& part) { forward_part(exec, a, g, part, isa); });
  });
}

void linear_backward(const Exec& exec, const LinearBackwardArgs& a, const IsaKernels& isa) noexcept {
  const InputActivation& o = a.input_act;
  if (!all_float({&a.dy, &a.x, &a.w, &a.dx.tensor, &o.pre, &o.gate, &o.dpre.tensor, &o.dgate.tensor}) ||
      !all_f32({&a.dw.tensor, &a.db.tensor})) {
    return linear_backward_fallback(exec, a, isa);
  }
  for_groups(a.groups, a.dy.rows(), a.w, {}, [&](const Group& g, int64_t e) {
    const bool wants_dx = a.dx || o.pre.defined();
    if (wants_dx && on_tiles(exec, isa, {&a.dy, &a.w})) {
      dx_on_tiles(exec, a, g, isa);
    } else if (wants_dx) {
      over_threads(exec, g.rows, a.x.cols(), [&](const Part& part) { dx_part(exec, a, g, part, isa); });
    }
    if (!a.dw && !a.db) return;
    const auto of_group = [&](const Tensor& t) {
      return a.groups.defined() ? t.slice(0, e, 1).flatten_to(t.rank() - 1) : t;
    };
    const Tensor dw = a.dw ? of_group(a.dw.tensor) : Tensor(), db = a.db ? of_group(a.db.tensor) : Tensor();
    const bool dw_of_tiles = a.dw && on_tiles(exec, isa, {&a.dy, &a.x});
    if (dw_of_tiles) dw_on_tiles(exec, a, g, dw, isa);
    over_threads(exec, {0, 1}, a.dy.cols(), [&](const Part& part) {
      if (a.dw && !dw_of_tiles) dw_part(exec, a, dw, g.rows, part, isa);
      if (a.db) db_part(a, db, g.rows, part.columns);
    });
  });
}

void pack_tiles(const Exec& exec, const PackTilesArgs& a, const IsaKernels& isa) noexcept {
  if (isa.pack_weight == nullptr || !is_float(a.x)) return ref::pack_tiles(ref::Split(*exec.pool), a);
  const int64_t outputs = a.x.dim(-2), inner = a.x.dim(-1), panels = a.y.dim(-3);
  over_thread_ranges(exec, a.y.rows() / a.y.dim(-2), 1, [&](Range mine, int) {
    for (int64_t p = mine.begin; p < mine.end; ++p) {
      isa.pack_weight({.to = a.y.as<uint16_t>() + p * a.y.stride(-3),
                       .from = float_row_at(a.x, p / panels * outputs * inner),
                       .stride = inner,
                       .rows = outputs,
                       .inner = inner,
                       .first_panel = p % panels,
                       .end_panel = p % panels + 1});
    }
  });
}

}  // namespace qkv::kernels::cpu
