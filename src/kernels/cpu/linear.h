// Shared by the products with plain weights and with block formats.
#pragma once

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {

// With a weight of any block format: linear_blocks.cpp. Returns false and does nothing if the integer kernels do not
// handle the dtypes or sizes.
bool linear_with_blocks(const Exec& exec, const LinearArgs& a, const IsaKernels& isa);

// On tiles or pairs of bf16: linear_tiles.cpp. Whether the instruction set has them and all operands are bf16.
bool on_tiles(const Exec& exec, const IsaKernels& isa, std::initializer_list<const Tensor*> operands);
TileSide weight_side(const Tensor& w, const Tensor& tiles, int64_t first);  // rows of w from an even panel on
void linear_on_tiles(const Exec& exec, const LinearArgs& a, const IsaKernels& isa);
struct Group;
void dx_on_tiles(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const IsaKernels& isa);
void dw_on_tiles(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const Tensor& dw,
                 const IsaKernels& isa);

// Address of row r, column c of a matrix.
inline const void* at(const Tensor& t, int64_t r, int64_t c) {
  return t.data() + (r * t.stride(0) + c) * size_of(t.dtype());
}
inline float* at_f32(const Tensor& t, int64_t r, int64_t c) {
  return t.as<float>() + r * t.stride(0) + c;
}

// One product: the rows of one group and its weight.
struct Group {
  Range rows;
  Tensor w, b;  // [O, K], [O]
};

template <class F>
void for_groups(const Tensor& groups, int64_t rows, const Tensor& w, const Tensor& b, F&& f) {
  if (!groups.defined()) return f(Group{{0, rows}, w, b}, 0);
  const auto* starts = groups.as<int32_t>();
  for (int64_t e = 0; e + 1 < groups.count(); ++e) {
    const auto one = [e](const Tensor& t) {
      if (!t.defined()) return t;
      const Tensor part = t.slice(0, e, 1);
      return part.rank() == 3 ? part.view({part.dim(1), part.dim(2)}) : part.view({part.dim(1)});
    };
    f(Group{{starts[e], starts[e + 1]}, one(w), one(b)}, e);
  }
}

// The rectangle of a product that one thread computes.
struct Part {
  Range rows, columns;
  int thread;
};

// Cuts rows x columns over the threads, along whichever has more to give: f(Part).
template <class F>
void over_threads(const Exec& exec, Range rows, int64_t columns, F&& f) {
  const int64_t count = rows.end - rows.begin, threads = exec.pool->threads();
  if (count <= 0 || columns <= 0) return;
  constexpr int64_t kNarrow =
      512;  // what few columns are multiplied with fits the cache; cutting them leaves ragged tiles
  const bool by_columns = columns >= std::max(32 * threads, kNarrow) || columns >= count;
  exec.pool->run(threads, [&](int64_t piece, int thread) {
    const auto part = [&](int64_t size) { return Range{piece * size / threads, (piece + 1) * size / threads}; };
    const Range r = by_columns ? rows : Range{rows.begin + part(count).begin, rows.begin + part(count).end};
    const Range c = by_columns ? part(columns) : Range{0, columns};
    if (r.begin < r.end && c.begin < c.end) f(Part{r, c, thread});
  });
}

// The epilogue of a product, as the ISA kernels take it.
inline EpilogueCall epilogue_of(const LinearArgs& a, const Tensor& bias) {
  const Epilogue& f = a.epilogue;
  using Kind = EpilogueCall::Kind;
  const bool activated = f.form.act.kind != Activation::Kind::identity || f.pre.defined();
  return {.kind = f.residual.defined() ? Kind::residual
                  : f.gate.defined()   ? Kind::gated
                  : activated          ? Kind::activation
                                       : Kind::plain,
          .y = matrix_of(a.y),
          .bias = float_row_at(bias, 0),
          .residual = matrix_of(f.residual),
          .pre = matrix_of(f.pre),
          .gate = matrix_of(f.gate),
          .act = activation_kind(f.form.act),
          .alpha = f.form.act.alpha,
          .limit = limit_of(f.form),
          .shift = f.form.shift,
          .rounded = a.y.dtype() == DType::bf16};
}
inline EpilogueCall epilogue_of(const LinearBackwardArgs& a) {
  const InputActivation& o = a.input_act;
  using Kind = EpilogueCall::Kind;
  if (!o.pre.defined()) return {.y = matrix_of(a.dx.tensor), .add = a.dx.add};
  return {.kind = o.gate.defined() ? Kind::gated_dx : Kind::activation_dx,
          .y = matrix_of(o.dpre.tensor),
          .pre = matrix_of(o.pre),
          .gate = matrix_of(o.gate),
          .dgate = matrix_of(o.dgate.tensor),
          .act = activation_kind(o.form.act),
          .alpha = o.form.act.alpha,
          .limit = limit_of(o.form),
          .shift = o.form.shift,
          .rounded = a.x.dtype() == DType::bf16,
          .add = o.dpre.add,
          .dgate_add = o.dgate.add};
}

// Whether the f32 sums are the result and can be computed in place.
inline bool writes_directly(const EpilogueCall& f) {
  return f.kind == EpilogueCall::Kind::plain && f.bias.data == nullptr && !f.y.bf16;
}

}  // namespace qkv::kernels::cpu
