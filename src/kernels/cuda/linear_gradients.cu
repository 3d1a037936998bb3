// Gradients of a linear layer's weight and bias: sums over rows.
//
// dw = dy^T x has few outputs and many rows: tiles that do not fill a wave of processors are cut along the rows, and the
// pieces are added in order. db: pieces of rows, then the pieces in order.
#include "kernels/cuda/linear.h"

namespace qkv::kernels::cuda {
namespace {

// dw [O, K] in two parts, along one axis: sums over all rows at once, and sums of pieces of rows. It follows from the shape
// alone, since the order of the sums does: not from the GPU.
struct Cut {
  int axis = 0;
  int64_t whole = 0;   // outputs or inputs of the first part
  int64_t pieces = 1;  // of the second part
};

// What a part costs, in hundredths of the time a tile takes for 64 rows.
int64_t cost_of(int64_t tiles, int64_t steps, int64_t pieces) {
  constexpr int64_t kProcessors = 132, kStep = 100, kPartialTile = 9, kLaunches = 1600;
  const int64_t waves = (tiles * pieces + kProcessors - 1) / kProcessors;
  return waves * ((steps + pieces - 1) / pieces) * kStep + (pieces > 1 ? tiles * pieces * kPartialTile + kLaunches : 0);
}

Cut cut_rows(int64_t outputs, int64_t inputs, int64_t rows) {
  constexpr int64_t kTile = 128, kProcessors = 132, kMostPieces = 16, kMostBytes = int64_t{128} << 20;
  const int64_t steps = (rows + 63) / 64;
  const int64_t tiles[2] = {(outputs + kTile - 1) / kTile, (inputs + kTile - 1) / kTile}, all = tiles[0] * tiles[1];
  const int64_t extents[2] = {outputs, inputs};
  Cut best{.axis = 0, .whole = outputs, .pieces = 1};
  int64_t least = cost_of(all, steps, 1);
  for (const int axis : {0, 1}) {
    const int64_t across = tiles[1 - axis], full = all / kProcessors * kProcessors / across;  // whole waves
    for (const int64_t lines : {int64_t{0}, full}) {
      const int64_t rest = (tiles[axis] - lines) * across, first = lines > 0 ? cost_of(lines * across, steps, 1) : 0;
      for (int64_t pieces = 2; pieces <= std::min(kMostPieces, steps) && rest > 0; ++pieces) {
        if (rest * pieces * kTile * kTile * 4 > kMostBytes) break;
        const int64_t cost = first + cost_of(rest, steps, pieces);
        if (cost >= least) continue;
        least = cost;
        best = {.axis = axis, .whole = std::min(lines * kTile, extents[axis]), .pieces = pieces};
      }
    }
  }
  return best;
}

// y = the pieces in order, or added to it.
void add_pieces(const Exec& exec, const float* partial, int64_t pieces, const View& y, bool add) {
  const int64_t columns = y.dims[1], count = y.dims[0] * columns, stride = y.strides[0];
  if (y.dtype == DType::f32 && columns % 4 == 0 && stride % 4 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0) {
    auto* to = reinterpret_cast<float*>(y.data);
    const auto* from = reinterpret_cast<const float4*>(partial);
    return each_thread(exec, count / 4, [=] __device__(int64_t i) {
      float4 total = from[i];
      for (int64_t piece = 1; piece < pieces; ++piece) {
        const float4 next = from[piece * (count / 4) + i];
        total = {total.x + next.x, total.y + next.y, total.z + next.z, total.w + next.w};
      }
      const int64_t row = 4 * i / columns;
      auto& here = *reinterpret_cast<float4*>(to + row * stride + (4 * i - row * columns));
      if (add) {
        const float4 old = here;
        total = {old.x + total.x, old.y + total.y, old.z + total.z, old.w + total.w};
      }
      here = total;
    });
  }
  each_thread(exec, count, [=] __device__(int64_t i) {
    float total = partial[i];
    for (int64_t piece = 1; piece < pieces; ++piece) total += partial[piece * count + i];
    y.put(y.at(i / columns, i % columns), total, add);
  });
}

// p, its k in pieces that are added in order.
void product_in_pieces(const Exec& exec, ProductArgs p, int64_t pieces) {
  const int64_t rows = p.k, each = (rows + pieces * 64 - 1) / (pieces * 64) * 64, size = p.m * p.n;
  const View y = p.out;
  auto* partial = reinterpret_cast<float*>(exec.scratch.data());
  p.out = View(Tensor(*exec.device, exec.scratch.data(), DType::f32, {p.m, p.n}));
  const bool add = std::exchange(p.add, false);
  ProductArgs at_once = p;
  at_once.pieces = pieces;
  at_once.piece_k = each;
  at_once.out_group = size;
  if (!product_of_many_rows(exec, at_once)) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      p.k = std::clamp<int64_t>(rows - piece * each, 0, each);
      product(exec, p);
      p.a.data += each * p.a.k * size_of(p.a.dtype);
      p.b.data += each * p.b.k * size_of(p.b.dtype);
      p.out.data += size * size_of(DType::f32);
    }
  }
  add_pieces(exec, partial, pieces, y, add);
}

// Sums over rows in order, kWide columns a thread: of pieces of kPieceRows rows, then of the pieces.
constexpr int64_t kPieceRows = 256;

template <class T, int kWide>
struct alignas(sizeof(T) * kWide) Pack {
  T of[kWide];
};

template <class R, class T, int kWide>
void sum_columns(const Exec& exec, const Tensor& x, const GradView& y) {
  const int64_t rows = x.rows(), columns = x.cols(), stride = x.stride(0), across = columns / kWide;
  const int64_t pieces = std::max<int64_t>((rows + kPieceRows - 1) / kPieceRows, 1);
  const auto* from = x.as<T>();
  auto* partial = reinterpret_cast<R*>(exec.scratch.data());
  each_thread(exec, pieces * across, [=] __device__(int64_t i) {
    const int64_t piece = i / across, c = i % across * kWide;
    const int64_t end = (piece + 1) * kPieceRows < rows ? (piece + 1) * kPieceRows : rows;
    R total[kWide] = {};
#pragma unroll 8
    for (int64_t r = piece * kPieceRows; r < end; ++r) {
      const auto some = *reinterpret_cast<const Pack<T, kWide>*>(from + r * stride + c);
#pragma unroll
      for (int j = 0; j < kWide; ++j) total[j] += static_cast<R>(some.of[j]);
    }
#pragma unroll
    for (int j = 0; j < kWide; ++j) partial[piece * columns + c + j] = total[j];
  });
  each_thread(exec, columns, [=] __device__(int64_t c) {
    R total = 0;
#pragma unroll 16
    for (int64_t piece = 0; piece < pieces; ++piece) total += partial[piece * columns + c];
    y.put(c, total);
  });
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

}  // namespace

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

void weight_gradient(const Exec& exec, const LinearBackwardArgs& a) {
  const Tensor& dw = a.dw.tensor;
  const auto part = [&](int axis, int64_t first, int64_t count) {  // some outputs or some inputs
    const Tensor dy = axis == 0 ? a.dy.slice(1, first, count) : a.dy, x = axis == 1 ? a.x.slice(1, first, count) : a.x;
    ProductArgs p{.a = operand(dy, true),
                  .b = operand(x, true),
                  .m = dy.cols(),
                  .n = x.cols(),
                  .k = a.dy.rows(),
                  .out = View(dw.slice(dw.rank() - 2 + axis, first, count)),
                  .add = a.dw.add};
    p.out_group = dw.rank() == 3 ? dw.stride(0) : 0;
    set_groups(p, a.groups, ProductArgs::Grouped::inner);
    return p;
  };
  const int64_t outputs = a.dy.cols(), inputs = a.x.cols();
  const bool narrow = a.dy.dtype() == DType::bf16 && a.x.dtype() == DType::bf16 && dw.dtype() != DType::f64;
  if (!narrow || a.groups.defined()) return product(exec, part(0, 0, outputs));
  const Cut cut = cut_rows(outputs, inputs, a.dy.rows());
  const int64_t extent = cut.axis == 0 ? outputs : inputs;
  if (cut.whole > 0) product(exec, part(cut.axis, 0, cut.whole));
  if (cut.whole < extent) product_in_pieces(exec, part(cut.axis, cut.whole, extent - cut.whole), cut.pieces);
}

}  // namespace qkv::kernels::cuda
