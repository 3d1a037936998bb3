// y = x w^T + b with its epilogue, and its gradients.
#include "kernels/cuda/bias_gradient.h"
#include "kernels/cuda/blocks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/product_skinny.h"

namespace qkv::kernels::cuda {
namespace {

using Grouped = ProductArgs::Grouped;

Operand operand(const Tensor& t, bool transposed) {
  const int last = t.rank() - 1;
  Operand o{.data = t.data(), .dtype = t.dtype(), .row = t.stride(last - 1), .k = 1};
  if (transposed) std::swap(o.row, o.k);
  if (t.rank() == 3) o.group = t.stride(0);
  return o;
}

void set_groups(ProductArgs& p, const Tensor& groups, Grouped how) {
  if (!groups.defined()) return;
  p.groups = groups.as<int32_t>();
  p.group_count = groups.count() - 1;
  p.grouped = how;
}

// Into how many pieces the rows behind a weight gradient are cut, so that all processors of a large GPU have work to the
// end. It follows from the shape alone, since the order of the sums does.
int64_t pieces_of_rows(int64_t outputs, int64_t inputs, int64_t rows) {
  constexpr int64_t kProcessors = 132, kMostPieces = 8, kLeastRows = 2048, kMostBytes = int64_t{128} << 20;
  constexpr int64_t kPerTile = 5;  // writing and adding up a piece of a tile, in rows multiplied
  const int64_t tiles = (outputs + 127) / 128 * ((inputs + 127) / 128);
  int64_t best = 1;
  double least = 0;
  for (int64_t pieces = 1; pieces <= kMostPieces; ++pieces) {
    if (pieces > 1 && (rows < pieces * kLeastRows || pieces * outputs * inputs * 4 > kMostBytes)) break;
    const int64_t waves = (tiles * pieces + kProcessors - 1) / kProcessors;
    const double time = static_cast<double>(waves * rows) / static_cast<double>(pieces) +
                        static_cast<double>(pieces > 1 ? kPerTile * pieces * tiles : 0);
    if (pieces == 1 || time < least) {
      best = pieces;
      least = time;
    }
  }
  return best;
}

// The rows behind dw and db of bf16, in pieces of `each`. Partial sums of every piece lie in scratch: of dw, if there are
// several, and two rows of those of db, as ProductArgs::row_sums has them.
struct Pieces {
  int64_t count, each;
  float *dw, *db;

  Pieces(const Exec& exec, const LinearBackwardArgs& a) {
    const int64_t outputs = a.dy.cols(), inputs = a.x.cols(), rows = a.dy.rows();
    count = pieces_of_rows(outputs, inputs, rows);
    each = count > 1 ? (rows + count * 64 - 1) / (count * 64) * 64 : rows;
    dw = reinterpret_cast<float*>(exec.scratch.data());
    db = dw + (count > 1 ? count * outputs * inputs : 0);
  }
};

// Where the product did not do it.
void sum_rows_of_pieces(const Exec& exec, const Tensor& of, const Pieces& pieces) {
  const View dy(of);
  const int64_t outputs = of.cols(), rows = of.rows(), each = pieces.each;
  float* to = pieces.db;
  each_thread(exec, pieces.count * 2 * outputs, [=] __device__(int64_t i) {
    const int64_t o = i % outputs, half = i / outputs % 2, first = i / outputs / 2 * each,
                  end = min(first + each, rows);
    float sums[4] = {};
    for (int64_t r = first; r < end; r += 8) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int64_t row = r + half * 4 + k;
        if (row < end) sums[k] += dy.get<float>(dy.row(row) + o);
      }
    }
    to[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  });
}

// dw and db = the pieces in order, or added to it; each only where it is wanted.
void add_up(const Exec& exec, const Pieces& pieces, const Grad& to_w, const Grad& to_b) {
  const GradView dw(to_w), db(to_b);
  const float *from = pieces.dw, *from_b = pieces.db;
  const int64_t weights = to_w ? to_w.tensor.count() : 0, biases = to_b ? to_b.tensor.count() : 0, count = pieces.count;
  const bool packed = weights > 0 && weights % 4 == 0 && to_w.tensor.dtype() == DType::f32 && to_w.tensor.contiguous();
  const int64_t each = packed ? 4 : 1, first_bias = weights / each;
  each_thread(exec, first_bias + biases, [=] __device__(int64_t i) {
    if (i >= first_bias) {
      const int64_t o = i - first_bias;
      float total = from_b[o];
      for (int64_t piece = 1; piece < 2 * count; ++piece) total += from_b[piece * biases + o];
      return db.put(o, total);
    }
    if (!packed) {
      float total = from[i];
      for (int64_t piece = 1; piece < count; ++piece) total += from[piece * weights + i];
      return dw.put(dw.view.element(i), total);
    }
    auto* to = reinterpret_cast<float4*>(dw.view.data) + i;
    float4 total = reinterpret_cast<const float4*>(from)[i];
    for (int64_t piece = 1; piece < count; ++piece) {
      const float4 next = reinterpret_cast<const float4*>(from + piece * weights)[i];
      total = {total.x + next.x, total.y + next.y, total.z + next.z, total.w + next.w};
    }
    if (dw.add) {
      const float4 old = *to;
      total = {old.x + total.x, old.y + total.y, old.z + total.z, old.w + total.w};
    }
    *to = total;
  });
}

ProductArgs weight_product(const LinearBackwardArgs& a) {
  ProductArgs p{.a = operand(a.dy, true),
                .b = operand(a.x, true),
                .m = a.dy.cols(),
                .n = a.x.cols(),
                .k = a.dy.rows(),
                .out = View(a.dw.tensor),
                .add = a.dw.add};
  set_groups(p, a.groups, Grouped::inner);
  p.out_group = a.dw.tensor.defined() && a.dw.tensor.rank() == 3 ? a.dw.tensor.stride(0) : 0;
  return p;
}

// Of bf16 without groups: dw, and db beside it.
void narrow_gradients(const Exec& exec, const LinearBackwardArgs& a) {
  const Pieces pieces(exec, a);
  const bool cut = pieces.count > 1;
  ProductArgs p = weight_product(a);
  if (cut) {
    p.out = View(Tensor(a.dy.device(), exec.scratch.data(), DType::f32, {p.m, p.n}));
    p.add = false;
    p.pieces = pieces.count;
    p.piece_k = pieces.each;
    p.out_group = p.m * p.n;
  }
  if (a.db) p.row_sums = pieces.db;
  if (!a.dw || !product_of_many_rows(exec, p)) {
    p.row_sums = nullptr;
    p.pieces = 1;
    const int64_t rows = p.k;
    for (int64_t piece = 0; a.dw && piece < pieces.count; ++piece) {
      p.k = cut ? std::clamp<int64_t>(rows - piece * pieces.each, 0, pieces.each) : rows;
      product(exec, p);
      p.out.data += p.out_group * size_of(DType::f32);
      p.a.data += pieces.each * p.a.k * size_of(DType::bf16);
      p.b.data += pieces.each * p.b.k * size_of(DType::bf16);
    }
    if (a.db) sum_rows_of_pieces(exec, a.dy, pieces);
  }
  if (cut || a.db) add_up(exec, pieces, cut ? a.dw : Grad{}, a.db);
}

// dw and db.
void weight_gradients(const Exec& exec, const LinearBackwardArgs& a) {
  const bool narrow = a.dy.dtype() == DType::bf16 && a.x.dtype() == DType::bf16 && !a.groups.defined() &&
                      (!a.dw || a.dw.tensor.dtype() != DType::f64);
  if (narrow && (a.dw || a.db)) return narrow_gradients(exec, a);
  if (a.dw) product(exec, weight_product(a));
  if (a.db) bias_gradient(exec, a);
}

ProductArgs input_product(const LinearBackwardArgs& a, const Grad& dx) {
  ProductArgs p{.a = operand(a.dy, false),
                .b = operand(a.w, true),
                .m = a.dy.rows(),
                .n = a.x.cols(),
                .k = a.dy.cols(),
                .out = View(dx.tensor),
                .add = dx.add};
  set_groups(p, a.groups, Grouped::rows);
  return p;
}

// Straight to the gradients of the activation's inputs, where the product can.
bool through_activation(const Exec& exec, const LinearBackwardArgs& a) {
  const InputActivation& in = a.input_act;
  if (!in.dpre || in.dpre.add || in.dgate.add || a.x.dtype() != DType::bf16) return false;
  ProductArgs p = input_product(a, in.dpre);
  p.fused = {.kind = Fused::Kind::backward,
             .form = in.form,
             .gate = View(in.gate),
             .pre = View(in.pre),
             .dgate = View(in.dgate.tensor)};
  return product_of_many_rows(exec, p);
}

}  // namespace

void linear(const Exec& exec, const LinearArgs& a) noexcept {
  if (products_of_few_rows(exec, {&a, 1})) return;
  const Epilogue& f = a.epilogue;
  const Tensor& sums = f.pre.defined() ? f.pre : a.y;  // rounded there, before the activation
  if (a.w.format().plain()) {
    ProductArgs p{.a = operand(a.x, false),
                  .b = operand(a.w, false),
                  .m = a.y.rows(),
                  .n = a.y.cols(),
                  .k = a.x.cols(),
                  .out = View(sums),
                  .bias = View(a.b),
                  .residual = View(f.residual)};
    set_groups(p, a.groups, Grouped::rows);
    if (f.gate.defined() || f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
      ProductArgs fused = p;
      fused.out = View(a.y);
      fused.fused = {.kind = Fused::Kind::forward, .form = f.form, .gate = View(f.gate), .pre = View(f.pre)};
      if (product_of_many_rows(exec, fused)) return;
    }
    product(exec, p);
  } else {
    product_blocks(exec, a, sums);
  }
  if (f.residual.defined()) return;
  if (f.gate.defined()) return gated(exec, {.y = a.y, .gate = f.gate, .up = sums, .form = f.form});
  if (f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
    activation(exec, {.y = a.y, .x = sums, .act = f.form.act});
  }
}

void linear_set(const Exec& exec, std::span<const LinearArgs> all) noexcept {
  if (products_of_few_rows(exec, all)) return;
  for (const LinearArgs& one : all) linear(exec, one);
}

bool input_gradient_set(const Exec& exec, const Grad& dx, std::span<const LinearBackwardArgs> all) noexcept {
  const bool takes = all.size() <= kMostInSet && dx.tensor.dtype() != DType::f64 &&
                     std::all_of(all.begin(), all.end(), [](const LinearBackwardArgs& a) {
                       return a.dy.dtype() == DType::bf16 && a.w.dtype() == DType::bf16 && !a.groups.defined();
                     });
  if (all.empty() || !takes) return false;
  ProductArgs p = input_product(all.front(), dx);
  for (const LinearBackwardArgs& a : all.subspan(1)) {
    p.more[p.more_count++] = {.a = operand(a.dy, false), .b = operand(a.w, true), .k = a.dy.cols()};
  }
  product(exec, p);
  return true;
}

void linear_backward(const Exec& exec, const LinearBackwardArgs& a) noexcept {
  weight_gradients(exec, a);
  const InputActivation& in = a.input_act;
  if (!in.pre.defined()) {
    if (a.dx) product(exec, input_product(a, a.dx));
    return;
  }
  if (through_activation(exec, a)) return;
  // dx passes through scratch, some rows at a time, rounded as if it had been stored. Rows are independent.
  const int64_t row_bytes = a.x.cols() * size_of(a.x.dtype());
  const int64_t rows = a.groups.defined() ? a.x.rows() : std::min(a.x.rows(), exec.scratch.count() / row_bytes);
  for (int64_t first = 0; first < a.x.rows(); first += rows) {
    const int64_t some = std::min(rows, a.x.rows() - first);
    LinearBackwardArgs part = a;
    part.dy = a.dy.slice(0, first, some);
    part.x = a.x.slice(0, first, some);
    const Tensor dx(a.x.device(), exec.scratch.data(), Format(a.x.dtype()), {some, a.x.cols()});
    product(exec, input_product(part, {dx}));
    const auto cut = [&](const Tensor& t) { return t.defined() ? t.slice(0, first, some) : t; };
    const Grad dpre{cut(in.dpre.tensor), in.dpre.add}, dgate{cut(in.dgate.tensor), in.dgate.add};
    if (in.gate.defined()) {
      gated_backward(exec,
                     {.dgate = dgate, .dup = dpre, .dy = dx, .gate = cut(in.gate), .up = cut(in.pre), .form = in.form});
    } else {
      activation_backward(exec, {.dx = dpre, .dy = dx, .x = cut(in.pre), .act = in.form.act});
    }
  }
}

}  // namespace qkv::kernels::cuda
