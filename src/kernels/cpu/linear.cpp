// y = x w^T + b and its gradients, for f32 and bf16 operands; other dtypes take the plain loops. What is computed for
// an output is one sum in the order isa_kernels.h states, so neither the rows beside it nor the number of threads can change
// it.
//
//   forward   dots: rows of x against rows of w, both read as they lie
//   dx        mix: dy (f32) times the rows of w
//   dw        mix: columns of dy times the rows of x, in chunks of rows that add up in order
// Where the forms multiply pairs of bf16 or tiles of them: linear_tiles.cpp. Sums of forward and dx that are not yet
// what is wanted (isa/finish.h) are finished while they lie in the second-level cache.
#include "kernels/cpu/linear.h"

#include "base/buffer.h"

namespace qkv::kernels::cpu {
namespace {

// Rows that are worked on together: small enough for the second-level cache, large enough to use a weight often.
constexpr int64_t kRowBlock = 128;
// Sums that are finished together: as many columns as that leaves for so many rows.
constexpr int64_t kSums = kRowBlock * 512;
int64_t columns_together(Range rows) {
  constexpr int64_t kTile = 48;  // columns of the widest
  return kSums / std::clamp<int64_t>(rows.end - rows.begin, 1, kRowBlock) / kTile * kTile;
}

void forward_part(const Exec& exec, const LinearArgs& a, const Group& g, const Part& part, const IsaKernels& isa) {
  const Range rows = part.rows, outputs = part.columns;
  int64_t room = 0;
  float* laid = scratch_of(exec, part.thread, &room);
  float* sums = laid + kDotRoom / size_of(DType::f32);
  const EpilogueCall finish = finish_of(a, g.b);
  const bool direct = as_they_are(finish);
  const int64_t widest = direct ? outputs.end - outputs.begin : columns_together(rows);
  for (int64_t first = outputs.begin; first < outputs.end; first += widest) {
    const int64_t width = std::min(widest, outputs.end - first);
    for (int64_t r = rows.begin; r < rows.end; r += kRowBlock) {
      const DotCall call{.x = at(a.x, r, 0),
                         .w = at(g.w, first, 0),
                         .y = direct ? at_f32(a.y, r, first) : sums,
                         .x_stride = a.x.stride(0),
                         .w_stride = g.w.stride(0),
                         .y_stride = direct ? a.y.stride(0) : width,
                         .rows = std::min(kRowBlock, rows.end - r),
                         .outputs = width,
                         .inner = a.x.cols(),
                         .room = laid};
      (a.x.dtype() == DType::f32 ? isa.dots_f32 : isa.dots_bf16)(call);
      for (int64_t i = 0; i < call.rows && !direct; ++i) isa.finish_row(finish, r + i, first, sums + i * width, width);
    }
  }
}

// dy of some rows and columns as f32: where it lies, or widened into memory for `count` rows.
const float* as_f32(const Tensor& t, Range rows, Range columns, float* room, int64_t* stride, const IsaKernels& isa) {
  if (t.dtype() == DType::f32) {
    *stride = t.stride(0);
    return at_f32(t, rows.begin, columns.begin);
  }
  *stride = columns.end - columns.begin;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    isa.widen(room + (r - rows.begin) * *stride, static_cast<const uint16_t*>(at(t, r, columns.begin)), *stride);
  }
  return room;
}

void dx_part(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const Part& part, const IsaKernels& isa) {
  const Range rows = part.rows, columns = part.columns;
  int64_t room = 0;
  float* scratch = scratch_of(exec, part.thread, &room);
  float *sums = scratch, *wide = sums + kSums;
  const int64_t outputs = a.dy.cols();
  const EpilogueCall finish = finish_of(a);
  const bool direct = as_they_are(finish);
  const int64_t block = std::clamp<int64_t>((room - kSums) / std::max<int64_t>(outputs, 1), 1, kRowBlock);
  const int64_t widest = direct ? columns.end - columns.begin : columns_together(rows);
  for (int64_t r = rows.begin; r < rows.end; r += block) {
    const Range some{r, std::min(r + block, rows.end)};
    MixCall call{.a_inner = 1,
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
      (g.w.dtype() == DType::f32 ? isa.mix_f32 : isa.mix_bf16)(call);
      for (int64_t i = 0; i < call.rows && !direct; ++i) {
        isa.finish_row(finish, r + i, first, sums + i * call.cols, call.cols);
      }
    }
  }
}

void dw_part(const Exec& exec, const LinearBackwardArgs& a, const Tensor& dw, Range rows, const Part& part,
             const IsaKernels& isa) {
  const Range outputs = part.columns;
  int64_t room = 0;
  float* scratch = scratch_of(exec, part.thread, &room);
  const int64_t count = outputs.end - outputs.begin;
  const int64_t block = std::max<int64_t>(room / std::max<int64_t>(count, 1), 1);
  bool add = a.dw.add;
  int64_t r = rows.begin;
  do {  // once even for no rows: the gradient of an unused weight is zero
    const Range some{r, std::min(r + block, rows.end)};
    MixCall call{.b = at(a.x, r, 0),
                 .y = at_f32(dw, outputs.begin, 0),
                 .a_row = 1,
                 .b_stride = a.x.stride(0),
                 .y_stride = dw.stride(0),
                 .rows = count,
                 .inner = some.end - some.begin,
                 .cols = a.x.cols(),
                 .add = add};
    call.a = as_f32(a.dy, some, outputs, scratch, &call.a_inner, isa);
    (a.x.dtype() == DType::f32 ? isa.mix_f32 : isa.mix_bf16)(call);
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

// What the forms do not know: the product by plain loops, and what comes of it as the other kernels have it.
void linear_elsewhere(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) {
  const Epilogue& f = a.finish;
  LinearArgs product = a;
  product.finish = {.residual = f.residual};
  if (f.pre.defined()) product.y = f.pre;
  ref::linear(ref::Split(*exec.pool), product);
  if (f.gate.defined()) return gated(exec, {.y = a.y, .gate = f.gate, .up = product.y, .form = f.form}, isa);
  if (finish_of(a, {}).kind != EpilogueCall::Kind::curve) return;
  activation(exec, {.y = a.y, .x = product.y, .act = f.form.act}, isa);
}

void linear_backward_elsewhere(const Exec& exec, const LinearBackwardArgs& a, const IsaKernels& isa) {
  const Origin& o = a.origin;
  if (!o.pre.defined()) return ref::linear_backward(ref::Split(*exec.pool), a);
  Buffer<std::byte> room(a.x.count() * size_of(a.x.dtype()));
  LinearBackwardArgs product = a;
  product.origin = {};
  product.dx = {Tensor(a.x.device(), room.data(), a.x.dtype(), a.x.shape())};
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
    if (!linear_with_blocks(exec, a, isa)) linear_elsewhere(exec, a, isa);
    return;
  }
  const Epilogue& f = a.finish;
  if (!all_simple({&a.x, &a.y, &f.gate, &f.pre, &f.residual}) || a.x.dtype() != a.w.dtype()) {
    return linear_elsewhere(exec, a, isa);
  }
  if (isa.pack_weight != nullptr && on_tiles(exec, isa, {&a.x, &a.w})) return linear_on_tiles(exec, a, isa);
  for_groups(a.groups, a.y.rows(), a.w, a.b, [&](const Group& g, int64_t) {
    over_threads(exec, g.rows, a.y.cols(), [&](const Part& part) { forward_part(exec, a, g, part, isa); });
  });
}

void linear_backward(const Exec& exec, const LinearBackwardArgs& a, const IsaKernels& isa) noexcept {
  const Origin& o = a.origin;
  if (!all_simple({&a.dy, &a.x, &a.w, &a.dx.tensor, &o.pre, &o.gate, &o.dpre.tensor, &o.dgate.tensor}) ||
      !all_f32({&a.dw.tensor, &a.db.tensor})) {
    return linear_backward_elsewhere(exec, a, isa);
  }
  for_groups(a.groups, a.dy.rows(), a.w, {}, [&](const Group& g, int64_t e) {
    const bool goes_on = a.dx || o.pre.defined();
    if (goes_on && on_tiles(exec, isa, {&a.dy, &a.w})) {
      dx_on_tiles(exec, a, g, isa);
    } else if (goes_on) {
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
  if (isa.pack_weight == nullptr || !simple(a.x)) return ref::pack_tiles(ref::Split(*exec.pool), a);
  const int64_t outputs = a.x.dim(-2), inner = a.x.dim(-1), panels = a.y.dim(-3);
  over_stretches(exec, a.y.rows() / a.y.dim(-2), 1, [&](Range mine, int) {
    for (int64_t p = mine.begin; p < mine.end; ++p) {
      isa.pack_weight({.to = a.y.as<uint16_t>() + p * a.y.stride(-3),
                       .from = floats_at(a.x, p / panels * outputs * inner),
                       .stride = inner,
                       .rows = outputs,
                       .inner = inner,
                       .first_panel = p % panels,
                       .end_panel = p % panels + 1});
    }
  });
}

}  // namespace qkv::kernels::cpu
