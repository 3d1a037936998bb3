// Gradients of weights and biases. Of bf16 by the tensor cores, in pieces of the rows, db as a column of dw; of others as plain
// products and sums over rows.
#include <algorithm>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/products/weight_gradients.h"
#include "kernels/cuda/stream_memory.h"

namespace qkv::kernels::cuda {
namespace {

using Args = std::span<const LinearBackwardArgs>;

// Sums over rows, a column a thread. Of a piece of rows each warp of a block takes as many neighbours, in order; then the warps
// in order, then the pieces as add_pieces does.
constexpr int64_t kWarpRows = 32, kPieceRows = kWarps * kWarpRows;

template <class R, class T>
void sum_columns(const Exec& exec, const T* from, const Tensor& x, const GradView& y) {
  const int64_t rows = x.rows(), columns = x.cols(), stride = x.stride(0), across = (columns + 31) / 32;
  const int64_t pieces = std::max<int64_t>((rows + kPieceRows - 1) / kPieceRows, 1);
  StreamMemory memory(exec);
  auto* partial = reinterpret_cast<R*>(memory.room(exec, pieces * columns * static_cast<int64_t>(sizeof(R))));
  if (partial == nullptr) return;
  each_block(exec, pieces * across, [=] __device__(int64_t block) {
    __shared__ R runs[kWarps][32];
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t piece = block / across, c = block % across * 32 + lane;
    const int64_t begin = piece * kPieceRows + warp * kWarpRows, end = min(begin + kWarpRows, rows);
    R total = 0;
    if (c < columns) {
#pragma unroll 8
      for (int64_t r = begin; r < end; ++r) total += static_cast<R>(from[r * stride + c]);
    }
    runs[warp][lane] = total;
    __syncthreads();
    if (warp == 0 && c < columns) {
#pragma unroll
      for (int w = 1; w < kWarps; ++w) total += runs[w][lane];
      partial[piece * columns + c] = total;
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
  switch (a.dy.dtype()) {
    case DType::f64:
      return sum_columns<double>(exec, a.dy.as<double>(), a.dy, db);
    case DType::bf16:
      return sum_columns<float>(exec, a.dy.as<__nv_bfloat16>(), a.dy, db);
    case DType::f16:
      return sum_columns<float>(exec, a.dy.as<__half>(), a.dy, db);
    default:
      return sum_columns<float>(exec, a.dy.as<float>(), a.dy, db);
  }
}

constexpr int64_t kMostInScratch = int64_t{32} << 20;  // numbers of f32

// Into how many pieces the rows behind the weight gradients of one input are cut, so that all processors of a large GPU have
// work to the end. It follows from the shapes alone, since the order of the sums does.
int64_t pieces_of_rows(int64_t outputs, int64_t inputs, int64_t rows) {
  constexpr int64_t kProcessors = 132, kMostPieces = 8, kLeastRows = 2048;
  constexpr double kPerNumber = 5.0 / (128 * 128);  // writing and adding up a piece of a tile, in rows multiplied
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  int64_t best = 1;
  double least = 0;
  for (int64_t pieces = 1; pieces <= kMostPieces; ++pieces) {
    if (pieces > 1 && (rows < pieces * kLeastRows || pieces * outputs * inputs > kMostInScratch)) break;
    for (const int64_t columns : {int64_t{128}, kWideColumns, kWidestColumns}) {
      if (rows < pieces * least_k(columns)) continue;
      const int64_t waves = up(up(outputs, 128) * up(inputs, columns) * pieces, kProcessors);
      const double products = static_cast<double>(waves * rows) / static_cast<double>(pieces) * tile_time(columns);
      const double time = products + (pieces > 1 ? kPerNumber * static_cast<double>(pieces * outputs * inputs) : 0);
      if ((pieces == 1 && columns == 128) || time < least) {
        best = pieces;
        least = time;
      }
    }
  }
  return best;
}

// What becomes of the pieces of a set: all dw as packs of four, one after the other, then the numbers of all db.
struct AllGradients {
  struct Weight {
    float4* dw;
    bool add;
    int64_t first_pack, first_output;  // among all
    GradView db;
  } of[kMostInSet];
  int count = 0;
  int64_t packs = 0, outputs = 0;

  explicit AllGradients(Args all) {
    for (const LinearBackwardArgs& a : all) {
      of[count++] = {a.dw.tensor.as<float4>(), a.dw.add, packs, outputs, GradView(a.db)};
      packs += a.dw.tensor.count() / 4;
      outputs += a.dy.cols();
    }
  }
  __device__ const Weight& of_pack(int64_t i) const {
    int w = 0;
    while (w + 1 < count && i >= of[w + 1].first_pack) ++w;
    return of[w];
  }
  __device__ const Weight& of_output(int64_t i) const {
    int w = 0;
    while (w + 1 < count && i >= of[w + 1].first_output) ++w;
    return of[w];
  }
};

// dw and db = the pieces in order, or added to them. Without `dw` it is there already; without `db` there is none.
void add_up(const Exec& exec, int64_t pieces, const float* dw, const float* db, Args all) {
  const AllGradients to(all);
  const int64_t packs = dw != nullptr ? to.packs : 0, outputs = db != nullptr ? to.outputs : 0;
  const auto* from = reinterpret_cast<const float4*>(dw);
  each_thread(exec, packs + outputs, [=] __device__(int64_t i) {
    if (i < packs) {
      float4 total = from[i];
      for (int64_t piece = 1; piece < pieces; ++piece) {
        const float4 next = from[piece * packs + i];
        total = {total.x + next.x, total.y + next.y, total.z + next.z, total.w + next.w};
      }
      const AllGradients::Weight& w = to.of_pack(i);
      float4& out = w.dw[i - w.first_pack];
      if (w.add) total = {out.x + total.x, out.y + total.y, out.z + total.z, out.w + total.w};
      out = total;
    } else {
      const int64_t o = i - packs;
      float total = db[o];
      for (int64_t piece = 1; piece < pieces; ++piece) total += db[piece * outputs + o];
      const AllGradients::Weight& w = to.of_output(o);
      if (w.db) w.db.put(o - w.first_output, total);
    }
  });
}

bool in_packs(const Tensor& dw) {
  return dw.dtype() == DType::f32 && dw.contiguous() && dw.count() % 4 == 0 && dw.count() > 0;
}

int64_t rows_of_piece(int64_t rows, int64_t pieces) {
  return (rows + pieces * 64 - 1) / (pieces * 64) * 64;
}

ProductArgs dw_product(const LinearBackwardArgs& a) {
  return {.a = operand(a.dy, true),
          .b = operand(a.x, true),
          .m = a.dy.cols(),
          .n = a.x.cols(),
          .k = a.dy.rows(),
          .out = View(a.dw.tensor),
          .add = a.dw.add};
}

bool narrow(const LinearBackwardArgs& a) {
  return a.dy.dtype() == DType::bf16 && a.x.dtype() == DType::bf16 && a.dw.tensor.dtype() != DType::f64 &&
         !a.groups.defined();
}

// dw and db of all in one launch of the tensor cores, db as the column of dw that an input of ones has; false, and nothing is
// done, where they do not take it.
bool all_at_once(const Exec& exec, Args all, int64_t pieces) {
  const bool takes = std::all_of(
      all.begin(), all.end(), [](const LinearBackwardArgs& a) { return a.dw && narrow(a) && in_packs(a.dw.tensor); });
  if (!takes) return false;
  ProductArgs p = dw_product(all.front());
  int64_t outputs = 0;
  bool biases = false, added = false;
  for (const LinearBackwardArgs& a : all) {
    outputs += a.dy.cols();
    biases = biases || a.db;
    added = added || a.dw.add;
  }
  const bool apart = pieces > 1 || (added && biases);  // in scratch first
  if (apart && pieces * outputs * p.n > kMostInScratch) return false;
  auto* const dw = reinterpret_cast<float*>(exec.scratch.data());
  auto* const db = apart ? dw + pieces * outputs * p.n : dw;
  std::vector<Beside> beside;
  int64_t first = 0;
  for (const LinearBackwardArgs& a : all) {
    const Tensor piece(a.dw.tensor.device(), exec.scratch.data() + first * p.n * size_of(DType::f32), DType::f32,
                       {a.dy.cols(), p.n});
    beside.push_back(
        {operand(a.dy, true), p.b, a.dy.cols(), View(apart ? piece : a.dw.tensor), {}, biases ? db + first : nullptr});
    first += a.dy.cols();
  }
  p.out = beside.front().out;
  p.sums_of_a = beside.front().sums_of_a;
  p.sums_group = outputs;
  p.add = !apart && added;
  p.pieces = pieces;
  p.piece_k = rows_of_piece(p.k, pieces);
  p.out_group = outputs * p.n;
  if (!product_of_many_rows(exec, p, std::span(beside).subspan(1))) return false;
  if (apart || biases) add_up(exec, pieces, apart ? dw : nullptr, biases ? db : nullptr, all);
  return true;
}

// p in pieces of rows, one behind the other in scratch.
void run_pieces(const Exec& exec, ProductArgs p, int64_t pieces) {
  const int64_t rows = p.k, each = rows_of_piece(rows, pieces), numbers = p.m * p.n;
  p.add = false;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    p.k = std::clamp<int64_t>(rows - piece * each, 0, each);
    p.out = View(Tensor(device(), exec.scratch.data() + piece * numbers * size_of(DType::f32), DType::f32, {p.m, p.n}));
    product(exec, p);
    p.a.data += each * p.a.k * size_of(DType::bf16);
    p.b.data += each * p.b.k * size_of(DType::bf16);
  }
}

__device__ const __nv_bfloat16_raw kOne{0x3f80};

// The same orders, of operands at any distance.
void one_by_one(const Exec& exec, const LinearBackwardArgs& a, int64_t pieces) {
  const auto* scratch = reinterpret_cast<const float*>(exec.scratch.data());
  ProductArgs p = dw_product(a);
  const bool plain = !a.dw || !narrow(a) || !in_packs(a.dw.tensor);
  if (plain) pieces = 1;
  if (a.dw && pieces == 1) {
    ProductArgs whole = p;
    set_groups(whole, a.groups, ProductArgs::Grouped::inner);
    whole.out_group = a.dw.tensor.rank() == 3 ? a.dw.tensor.stride(0) : 0;
    product(exec, whole);
  } else if (a.dw) {
    run_pieces(exec, p, pieces);
    add_up(exec, pieces, scratch, nullptr, {&a, 1});
  }
  if (!a.db) return;
  if (plain) return bias_gradient(exec, a);
  static const void* const one = [] {
    void* at = nullptr;
    cudaGetSymbolAddress(&at, kOne);
    return at;
  }();
  p.b = {.data = static_cast<const std::byte*>(one), .dtype = DType::bf16};  // everywhere the same one
  p.n = 1;
  run_pieces(exec, p, pieces);
  add_up(exec, pieces, nullptr, scratch, {&a, 1});
}

}  // namespace

void weight_gradients(const Exec& exec, std::span<const LinearBackwardArgs> all) {
  int64_t outputs = 0;
  for (const LinearBackwardArgs& a : all) outputs += a.dy.cols();
  const int64_t pieces = pieces_of_rows(outputs, all.front().x.cols(), all.front().x.rows());
  if (all_at_once(exec, all, pieces)) return;
  for (const LinearBackwardArgs& a : all) {
    if (all.size() == 1 || !all_at_once(exec, {&a, 1}, pieces)) one_by_one(exec, a, pieces);
  }
}

}  // namespace qkv::kernels::cuda
