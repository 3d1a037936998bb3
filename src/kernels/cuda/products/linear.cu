// y = x w^T + b with its epilogue, and its gradients.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/blocks.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/products/product_skinny.h"

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

// Sums over rows, kWide columns a thread. Of a piece of rows each warp of a block takes as many neighbours, in order; then the
// warps in order, then the pieces as add_pieces does.
constexpr int64_t kWarpRows = 32, kPieceRows = kWarps * kWarpRows;

template <class T, int kWide>
struct alignas(sizeof(T) * kWide) Pack {
  T of[kWide];
};

template <class R, class T, int kWide>
void sum_columns(const Exec& exec, const Tensor& x, const GradView& y) {
  constexpr int64_t kAcross = 32 * kWide;
  const int64_t rows = x.rows(), columns = x.cols(), stride = x.stride(0), across = (columns + kAcross - 1) / kAcross;
  const int64_t pieces = std::max<int64_t>((rows + kPieceRows - 1) / kPieceRows, 1);
  const auto* from = x.as<T>();
  auto* partial = reinterpret_cast<R*>(exec.scratch.data());
  each_block(exec, pieces * across, [=] __device__(int64_t block) {
    __shared__ R runs[kWarps][kAcross];
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t piece = block / across, first = block % across * kAcross, c = first + lane * kWide;
    const int64_t begin = piece * kPieceRows + warp * kWarpRows, end = min(begin + kWarpRows, rows);
    R total[kWide] = {};
    if (c < columns) {
#pragma unroll 8
      for (int64_t r = begin; r < end; ++r) {
        const auto some = *reinterpret_cast<const Pack<T, kWide>*>(from + r * stride + c);
#pragma unroll
        for (int j = 0; j < kWide; ++j) total[j] += static_cast<R>(some.of[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kWide; ++j) runs[warp][lane * kWide + j] = total[j];
    __syncthreads();
    for (int64_t i = threadIdx.x; i < min(kAcross, columns - first); i += kThreads) {
      R sum = runs[0][i];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) sum += runs[w][i];
      partial[piece * columns + first + i] = sum;
    }
    __syncthreads();
  });
  add_pieces(exec, partial, pieces, columns, columns, [=] __device__(int64_t c, R sum) { y.put(c, sum); });
}

template <class R>
void sum_columns_of_groups(const Exec& exec, const LinearBackwardArgs& a) {
  const GradView db(a.db);
  const View dy(a.dy);
  const int64_t outputs = a.dy.cols();
  const auto* groups = a.groups.as<int32_t>();
  each_thread(exec, (a.groups.count() - 1) * outputs, [=] __device__(int64_t i) {
    const int64_t g = i / outputs, o = i % outputs;
    R total = 0;
    for (int64_t r = groups[g]; r < groups[g + 1]; ++r) total += dy.get<R>(dy.row(r) + o);
    db.put((db.view.rank == 2 ? db.view.at(g) : 0) + o, total);
  });
}

void bias_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  if (a.groups.defined()) {
    return in_real(a.db.tensor, [&](auto r) { sum_columns_of_groups<decltype(r)>(exec, a); });
  }
  const GradView db(a.db);
  const bool aligned =
      a.dy.cols() % 8 == 0 && a.dy.stride(0) % 8 == 0 && reinterpret_cast<uintptr_t>(a.dy.data()) % 16 == 0;
  switch (a.dy.dtype()) {
    case DType::f64:
      return sum_columns<double, double, 1>(exec, a.dy, db);
    case DType::bf16:
      return aligned ? sum_columns<float, __nv_bfloat16, 8>(exec, a.dy, db)
                     : sum_columns<float, __nv_bfloat16, 1>(exec, a.dy, db);
    case DType::f16:
      return sum_columns<float, __half, 1>(exec, a.dy, db);
    default:
      return sum_columns<float, float, 1>(exec, a.dy, db);
  }
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

// dw = the pieces in order, or added to it.
void add_up(const Exec& exec, const float* partial, int64_t pieces, const Grad& grad) {
  const GradView dw(grad);
  const int64_t count = grad.tensor.count();
  if (grad.tensor.dtype() == DType::f32 && grad.tensor.contiguous() && count % 4 == 0) {
    auto* to = grad.tensor.as<float4>();
    const auto* from = reinterpret_cast<const float4*>(partial);
    const bool add = grad.add;
    return each_thread(exec, count / 4, [=] __device__(int64_t i) {
      float4 total = from[i];
      for (int64_t piece = 1; piece < pieces; ++piece) {
        const float4 next = from[piece * (count / 4) + i];
        total = {total.x + next.x, total.y + next.y, total.z + next.z, total.w + next.w};
      }
      if (add) {
        const float4 old = to[i];
        total = {old.x + total.x, old.y + total.y, old.z + total.z, old.w + total.w};
      }
      to[i] = total;
    });
  }
  each_thread(exec, count, [=] __device__(int64_t i) {
    float total = partial[i];
    for (int64_t piece = 1; piece < pieces; ++piece) total += partial[piece * count + i];
    dw.put(dw.view.element(i), total);
  });
}

void weight_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  ProductArgs p{.a = operand(a.dy, true),
                .b = operand(a.x, true),
                .m = a.dy.cols(),
                .n = a.x.cols(),
                .k = a.dy.rows(),
                .out = View(a.dw.tensor),
                .add = a.dw.add};
  set_groups(p, a.groups, Grouped::inner);
  p.out_group = a.dw.tensor.rank() == 3 ? a.dw.tensor.stride(0) : 0;
  const bool narrow = a.dy.dtype() == DType::bf16 && a.x.dtype() == DType::bf16 && a.dw.tensor.dtype() != DType::f64;
  const int64_t pieces = narrow && !a.groups.defined() ? pieces_of_rows(p.m, p.n, p.k) : 1;
  if (pieces == 1) return product(exec, p);
  const Tensor partial(a.dw.tensor.device(), exec.scratch.data(), DType::f32, {pieces, p.m, p.n});
  p.out = View(partial.slice(0, 0, 1).view({p.m, p.n}));
  p.add = false;
  p.pieces = pieces;
  p.piece_k = (p.k + pieces * 64 - 1) / (pieces * 64) * 64;
  p.out_group = p.m * p.n;
  if (!product_of_many_rows(exec, p)) {
    const int64_t rows = p.k, each = p.piece_k;
    p.pieces = 1;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      p.k = std::clamp<int64_t>(rows - piece * each, 0, each);
      p.out = View(partial.slice(0, piece, 1).view({p.m, p.n}));
      product(exec, p);
      p.a.data += each * p.a.k * size_of(DType::bf16);
      p.b.data += each * p.b.k * size_of(DType::bf16);
    }
  }
  add_up(exec, partial.as<float>(), pieces, a.dw);
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
  if (a.dw) weight_gradient(exec, a);
  if (a.db) bias_gradient(exec, a);
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
