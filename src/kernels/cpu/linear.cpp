// y = x w^T + b and its gradients, for f32 and bf16 operands; other dtypes take the plain loops. What is computed for
// an output is one sum in the order forms.h states, so neither the rows beside it nor the number of threads can change
// it.
//
//   forward   dots: rows of x against rows of w, both read as they lie
//   dx        mix: dy (f32) times the rows of w
//   dw        mix: columns of dy times the rows of x, in chunks of rows that add up in order
// Where the forms multiply pairs of bf16 or tiles of them: linear_tiles.cpp.
#include "kernels/cpu/linear.h"

namespace qkv::kernels::cpu {
namespace {

// Rows that are worked on together: small enough for the second-level cache, large enough to use a weight often.
constexpr int64_t kRowBlock = 128;

template <const Forms& F>
void forward_part(const Exec& exec, const LinearArgs& a, const Group& g, Range rows, Range outputs, int thread) {
  int64_t room = 0;
  float* scratch = scratch_of(exec, thread, &room);
  const bool direct = a.y.dtype() == DType::f32;
  float* laid = scratch;
  scratch += kDotRoom / size_of(DType::f32);
  room -= kDotRoom / size_of(DType::f32);
  const int64_t widest = room / kRowBlock;
  for (int64_t first = outputs.begin; first < outputs.end; first += widest) {
    const Range columns{first, std::min(first + widest, outputs.end)};
    const int64_t width = columns.end - columns.begin;
    for (int64_t r = rows.begin; r < rows.end; r += kRowBlock) {
      const int64_t count = std::min(kRowBlock, rows.end - r);
      const DotCall call{.x = at(a.x, r, 0),
                         .w = at(g.w, columns.begin, 0),
                         .y = direct ? at_f32(a.y, r, columns.begin) : scratch,
                         .x_stride = a.x.stride(0),
                         .w_stride = g.w.stride(0),
                         .y_stride = direct ? a.y.stride(0) : width,
                         .rows = count,
                         .outputs = width,
                         .inner = a.x.cols(),
                         .room = laid};
      (a.x.dtype() == DType::f32 ? F.dots_f32 : F.dots_bf16)(call);
      if (direct && !g.b.defined()) continue;
      for (int64_t i = 0; i < count; ++i) put_row(F, a.y, r + i, columns, call.y + i * call.y_stride, g.b, false);
    }
  }
}

// dy of some rows and columns as f32: where it lies, or widened into memory for `count` rows.
template <const Forms& F>
const float* as_f32(const Tensor& t, Range rows, Range columns, float* room, int64_t* stride) {
  if (t.dtype() == DType::f32) {
    *stride = t.stride(0);
    return at_f32(t, rows.begin, columns.begin);
  }
  *stride = columns.end - columns.begin;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    F.widen(room + (r - rows.begin) * *stride, static_cast<const uint16_t*>(at(t, r, columns.begin)), *stride);
  }
  return room;
}

template <const Forms& F>
void dx_part(const Exec& exec, const LinearBackwardArgs& a, const Group& g, Range rows, Range columns, int thread) {
  int64_t room = 0;
  float* scratch = scratch_of(exec, thread, &room);
  const int64_t outputs = a.dy.cols(), width = columns.end - columns.begin;
  const Tensor& dx = a.dx.tensor;
  const bool direct = dx.dtype() == DType::f32;
  const int64_t block = std::clamp<int64_t>(room / (outputs + width), 1, kRowBlock);
  for (int64_t r = rows.begin; r < rows.end; r += block) {
    const Range some{r, std::min(r + block, rows.end)};
    MixCall call{.b = at(g.w, 0, columns.begin),
                 .y = direct ? at_f32(dx, r, columns.begin) : scratch + block * outputs,
                 .a_inner = 1,
                 .b_stride = g.w.stride(0),
                 .y_stride = direct ? dx.stride(0) : width,
                 .rows = some.end - some.begin,
                 .inner = outputs,
                 .cols = width,
                 .add = direct && a.dx.add};
    call.a = as_f32<F>(a.dy, some, {0, outputs}, scratch, &call.a_row);
    (g.w.dtype() == DType::f32 ? F.mix_f32 : F.mix_bf16)(call);
    for (int64_t i = 0; i < call.rows && !direct; ++i) {
      put_row(F, dx, r + i, columns, call.y + i * width, {}, a.dx.add);
    }
  }
}

template <const Forms& F>
void dw_part(const Exec& exec, const LinearBackwardArgs& a, const Tensor& dw, Range rows, Range outputs, int thread) {
  int64_t room = 0;
  float* scratch = scratch_of(exec, thread, &room);
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
    call.a = as_f32<F>(a.dy, some, outputs, scratch, &call.a_inner);
    (a.x.dtype() == DType::f32 ? F.mix_f32 : F.mix_bf16)(call);
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

}  // namespace

template <const Forms& F>
void linear(const Exec& exec, const LinearArgs& a) noexcept {
  if (!a.w.format().plain()) return linear_with_blocks(exec, a, F);
  if (!simple(a.x) || !simple(a.y) || a.x.dtype() != a.w.dtype()) return ref::linear(ref::Split(*exec.pool), a);
  if (F.lay_weight != nullptr && on_tiles(exec, F, {&a.x, &a.w})) return linear_on_tiles(exec, a, F);
  for_groups(a.groups, a.y.rows(), a.w, a.b, [&](const Group& g, int64_t) {
    over_threads(exec, g.rows, a.y.cols(),
                 [&](Range rows, Range outputs, int thread) { forward_part<F>(exec, a, g, rows, outputs, thread); });
  });
}

template <const Forms& F>
void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept {
  const auto f32_or_none = [](const Grad& g) { return !g || g.tensor.dtype() == DType::f32; };
  if (!simple(a.dy) || !simple(a.x) || !simple(a.w) || (a.dx && !simple(a.dx.tensor)) || !f32_or_none(a.dw) ||
      !f32_or_none(a.db)) {
    return ref::linear_backward(ref::Split(*exec.pool), a);
  }
  for_groups(a.groups, a.dy.rows(), a.w, {}, [&](const Group& g, int64_t e) {
    if (a.dx && on_tiles(exec, F, {&a.dy, &a.w})) {
      dx_on_tiles(exec, a, g, F);
    } else if (a.dx) {
      over_threads(exec, g.rows, a.x.cols(),
                   [&](Range rows, Range columns, int thread) { dx_part<F>(exec, a, g, rows, columns, thread); });
    }
    if (!a.dw && !a.db) return;
    const auto of_group = [&](const Tensor& t) {
      return a.groups.defined() ? t.slice(0, e, 1).flatten_to(t.rank() - 1) : t;
    };
    const Tensor dw = a.dw ? of_group(a.dw.tensor) : Tensor(), db = a.db ? of_group(a.db.tensor) : Tensor();
    const bool dw_of_tiles = a.dw && on_tiles(exec, F, {&a.dy, &a.x});
    if (dw_of_tiles) dw_on_tiles(exec, a, g, dw, F);
    over_threads(exec, {0, 1}, a.dy.cols(), [&](Range, Range outputs, int thread) {
      if (a.dw && !dw_of_tiles) dw_part<F>(exec, a, dw, g.rows, outputs, thread);
      if (a.db) db_part(a, db, g.rows, outputs);
    });
  });
}

template <const Forms& F>
void lay_tiles(const Exec& exec, const LayTilesArgs& a) noexcept {
  if (F.lay_weight == nullptr || !simple(a.x)) return ref::lay_tiles(ref::Split(*exec.pool), a);
  const int64_t outputs = a.x.dim(-2), inner = a.x.dim(-1), panels = a.y.dim(-3);
  over_stretches(exec, a.y.rows() / a.y.dim(-2), 1, [&](Range mine, int) {
    for (int64_t p = mine.begin; p < mine.end; ++p) {
      F.lay_weight({.to = a.y.as<uint16_t>() + p * a.y.stride(-3),
                    .from = floats_at(a.x, p / panels * outputs * inner),
                    .stride = inner,
                    .rows = outputs,
                    .inner = inner,
                    .first_panel = p % panels,
                    .end_panel = p % panels + 1});
    }
  });
}

QKV_FOR_ALL_FORMS(linear, LinearArgs)
QKV_FOR_ALL_FORMS(lay_tiles, LayTilesArgs)
QKV_FOR_ALL_FORMS(linear_backward, LinearBackwardArgs)

}  // namespace qkv::kernels::cpu
