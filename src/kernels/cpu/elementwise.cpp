// fill, copy, add, activations, dropout, gated activations, rotary and softmax on f32 and bf16 rows.
#include <bit>
#include <cstring>

#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {
namespace {

GateCall gate_call(const Gating& form) {
  return {.act = activation_kind(form.act), .alpha = form.act.alpha, .limit = limit_of(form), .shift = form.shift};
}

// y = factor * x where x is transposed: in small squares, so that strided reads stay in the cache.
void transposed_copy(const Exec& exec, const CopyArgs& a, const IsaKernels& isa) {
  constexpr int64_t kSide = 16;
  const auto factor = static_cast<float>(a.factor);
  const auto size_y = size_of(a.y.dtype()), size_x = size_of(a.x.dtype());
  over_pieces(exec, pieces_for(exec, a.y.count()), a.y.dim(0), kSide, [&](Range rows, int) {
    for (int64_t c = 0; c < a.y.dim(1); c += kSide) {
      const int64_t cols = std::min(kSide, a.y.dim(1) - c);
      for (int64_t first = rows.begin; first < rows.end; first += kSide) {
        float square[size_t{kSide * kSide}], row[size_t{kSide}];
        const int64_t count = std::min(kSide, rows.end - first);
        for (int64_t j = 0; j < cols; ++j) {  // down a column of x, which is contiguous
          isa.scaled_row(
              {row},
              {a.x.data() + (first * a.x.stride(0) + (c + j) * a.x.stride(1)) * size_x, a.x.dtype() == DType::bf16}, 1,
              false, count);
          for (int64_t i = 0; i < count; ++i) square[i * kSide + j] = row[i];
        }
        for (int64_t i = 0; i < count; ++i) {
          isa.scaled_row({a.y.data() + ((first + i) * a.y.stride(0) + c) * size_y, a.y.dtype() == DType::bf16},
                         {square + i * kSide}, factor, a.add, cols);
        }
      }
    }
  });
}

}  // namespace

void fill(const Exec& exec, const FillArgs& a) noexcept {
  const bool zero = std::bit_cast<uint64_t>(a.value) == 0;  // all bytes are 0 in every dtype
  if (!zero || !a.y.format().plain() || !a.y.rows_contiguous()) return ref::fill(ref::Split(*exec.pool), a);
  const auto size = static_cast<size_t>(size_of(a.y.dtype()));
  over_elements(exec, {&a.y},
                [&](ElementRange at) { std::memset(at(a.y).data, 0, static_cast<size_t>(at.count) * size); });
}

void copy(const Exec& exec, const CopyArgs& a, const IsaKernels& isa) noexcept {
  // Contiguous rows on both sides; other layouts take the reference loops.
  const bool rows_alike = a.y.cols() == a.x.cols() && a.y.rows_contiguous() && a.x.rows_contiguous();
  const bool flat = a.y.contiguous() && a.x.contiguous();
  if (all_float({&a.y, &a.x}) && a.y.rank() == 2 && a.x.rank() == 2 && a.y.stride(1) == 1 && a.x.stride(0) == 1 &&
      a.x.stride(1) != 1) {
    return transposed_copy(exec, a, isa);
  }
  if (!all_float({&a.y, &a.x}) || (!flat && (!rows_alike || a.y.cols() < 4))) {
    return ref::copy(ref::Split(*exec.pool), a);
  }
  const auto factor = static_cast<float>(a.factor);
  over_elements(exec, {&a.y, &a.x},
                [&](ElementRange at) { isa.scaled_row(at(a.y), at(a.x), factor, a.add, at.count); });
}

void add(const Exec& exec, const AddArgs& args, const IsaKernels& isa) noexcept {
  if (!all_float({&args.y, &args.a, &args.b})) return ref::add(ref::Split(*exec.pool), args);
  over_elements(exec, {&args.y, &args.a, &args.b},
                [&](ElementRange at) { isa.add_rows(at(args.y), at(args.a), at(args.b), at.count); });
}

void activation(const Exec& exec, const ActivationArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.x})) return ref::activation(ref::Split(*exec.pool), a);
  over_elements(exec, {&a.y, &a.x}, [&](ElementRange at) {
    isa.activation_row(
        {.y = at(a.y), .x = at(a.x), .count = at.count, .act = activation_kind(a.act), .alpha = a.act.alpha});
  });
}

void activation_backward(const Exec& exec, const ActivationBackwardArgs& a, const IsaKernels& isa) noexcept {
  if (!a.dx) return;
  const Tensor& dx = a.dx.tensor;
  if (!all_float({&dx, &a.dy, &a.x})) return ref::activation_backward(ref::Split(*exec.pool), a);
  over_elements(exec, {&dx, &a.dy, &a.x}, [&](ElementRange at) {
    isa.activation_dx_row({.y = at(dx),
                           .x = at(a.x),
                           .dy = at(a.dy),
                           .count = at.count,
                           .act = activation_kind(a.act),
                           .alpha = a.act.alpha,
                           .add = a.dx.add});
  });
}

void dropout(const Exec& exec, const DropoutArgs& a, const IsaKernels& isa) noexcept {
  const bool joined = a.residual.defined();
  const Tensor& other = joined ? a.residual : a.x;
  if (!all_float({&a.y, &a.x, &other})) return ref::dropout(ref::Split(*exec.pool), a);
  constexpr int64_t kSome = 256;
  const RowsOf y(a.y), x(a.x), residual(other);
  over_rows(exec, a.y.rows(), a.y.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      DropoutFactors kept(a.dropout, r);
      for (int64_t c = 0; c < a.y.cols(); c += kSome) {
        float some[size_t{kSome}];
        const int64_t count = std::min(kSome, a.y.cols() - c);
        isa.scaled_row({some}, x(r, c), 1, false, count);
        for (int64_t i = 0; i < count; ++i) {
          const float factor = kept(static_cast<uint64_t>(c + i));
          some[i] = factor > 0 ? some[i] * factor : 0;
        }
        if (joined) isa.scaled_row({some}, residual(r, c), 1, true, count);
        isa.scaled_row(y(r, c), {some}, 1, false, count);
      }
    }
  });
}

void gated(const Exec& exec, const GatedArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.gate, &a.up})) return ref::gated(ref::Split(*exec.pool), a);
  over_elements(exec, {&a.y, &a.gate, &a.up}, [&](ElementRange at) {
    GateCall call = gate_call(a.form);
    call.y = at(a.y);
    call.gate = at(a.gate);
    call.up = at(a.up);
    call.count = at.count;
    isa.gated_row(call);
  });
}

void gated_backward(const Exec& exec, const GatedBackwardArgs& a, const IsaKernels& isa) noexcept {
  const Tensor &dgate = a.dgate.tensor, &dup = a.dup.tensor;
  if (!all_float({&a.dy, &a.gate, &a.up, &dgate, &dup})) return ref::gated_backward(ref::Split(*exec.pool), a);
  over_elements(exec, {&a.dy, &a.gate, &a.up, &dgate, &dup}, [&](ElementRange at) {
    GateCall call = gate_call(a.form);
    call.dy = at(a.dy);
    call.gate = at(a.gate);
    call.up = at(a.up);
    call.dgate = at(dgate);
    call.dup = at(dup);
    call.count = at.count;
    call.dgate_add = a.dgate.add;
    call.dup_add = a.dup.add;
    isa.gated_dx_row(call);
  });
}

void rotary(const Exec& exec, const RotaryArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.x, &a.cos, &a.sin})) return ref::rotary(ref::Split(*exec.pool), a);
  const RowsOf y(a.y), x(a.x), cos(a.cos), sin(a.sin);
  const auto* positions = a.positions.as<int32_t>();
  const int64_t pairs = a.cos.cols(), heads = a.x.dim(1), end = a.first + 2 * pairs, width = a.x.dim(2);
  over_rows(exec, a.x.dim(0) * heads, width, [&](Range tasks, int) {
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const auto position = positions[task / heads];
      isa.rotate_row({.y = y(task, a.first),
                      .x = x(task, a.first),
                      .cosine = cos(position),
                      .sine = sin(position),
                      .pairs = pairs,
                      .interleaved = a.interleaved,
                      .inverse = a.inverse,
                      .add = a.add});
      const auto keep = [&](int64_t from, int64_t to) {
        if (from < to) isa.scaled_row(y(task, from), x(task, from), 1, a.add, to - from);
      };
      keep(0, a.first);
      keep(end, width);
    }
  });
}

void softmax(const Exec& exec, const SoftmaxArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.y, &a.x})) return ref::softmax(ref::Split(*exec.pool), a);
  const RowsOf y(a.y), x(a.x);
  over_rows(exec, a.y.rows(), a.y.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) isa.softmax_row(y(r), x(r), a.y.cols());
  });
}

void softmax_backward(const Exec& exec, const SoftmaxBackwardArgs& a, const IsaKernels& isa) noexcept {
  if (!a.dx) return;
  if (!all_float({&a.dx.tensor, &a.dy, &a.y})) return ref::softmax_backward(ref::Split(*exec.pool), a);
  const RowsOf dx(a.dx.tensor), dy(a.dy), y(a.y);
  over_rows(exec, a.y.rows(), a.y.cols(), [&](Range rows, int) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      isa.softmax_dx_row(dx(r), dy(r), y(r), a.dx.add, a.y.cols());
    }
  });
}

}  // namespace qkv::kernels::cpu
