// linear for bf16 operands where the instruction set multiplies tiles (isa/tile_product.h) or pairs
// (isa/pair_product.h, which leaves forward to matmul_nt). All three products are sum_k a[m][k] b[n][k]; they differ in
// memory layout:
//
//             k         a                 b
//   forward   inputs    x, contiguous     w, packed as tiles once per change (Param::tiles), or contiguous
//   dx        outputs   dy, contiguous    w, strided
//   dw        rows      dy, strided       x, strided
#include "kernels/cpu/linear.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kTwoPanels = 2 * kTileSide;  // where columns may be cut: see TileCall

using Layout = TileSide::Layout;

TileSide side(const Tensor& t, int64_t row, int64_t column, Layout layout) {
  return {static_cast<const uint16_t*>(at(t, row, column)), t.stride(0), layout};
}

// Splits rows if each thread gets many, so that it reuses what it packs of the other side; else columns.
template <class F>
void over_tile_threads(const Exec& exec, Range rows, int64_t columns, F&& f) {
  constexpr int64_t kMany = 256;
  const int64_t count = rows.end - rows.begin, threads = exec.pool->threads();
  if (count <= 0 || columns <= 0) return;
  if (count >= kMany * threads || columns < kTwoPanels * threads) {
    return over_thread_ranges(exec, count, kTileSide, [&](Range r, int thread) {
      f(Range{rows.begin + r.begin, rows.begin + r.end}, Range{0, columns}, thread);
    });
  }
  over_thread_ranges(exec, columns, kTwoPanels, [&](Range c, int thread) { f(rows, c, thread); });
}

bool is_bf16(const Tensor& t) {
  return t.format().plain() && t.dtype() == DType::bf16;
}

}  // namespace

bool on_tiles(const Exec& exec, const IsaKernels& isa, std::initializer_list<const Tensor*> operands) {
  return isa.tile_product != nullptr && exec.scratch.dim(1) >= kTileScratch &&
         std::all_of(operands.begin(), operands.end(), [](const Tensor* t) { return is_bf16(*t); });
}

TileSide weight_side(const Tensor& w, const Tensor& tiles, int64_t first) {
  if (!tiles.defined()) return side(w, first, 0, Layout::k_contiguous);
  return {tiles.as<uint16_t>() + first / kTileSide * tiles.stride(-3), 0, Layout::packed};
}

void linear_on_tiles(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) {
  for_groups(a.groups, a.y.rows(), a.w, a.b, [&](const Group& g, int64_t e) {
    const Tensor tiles = a.tiles.rank() == 4 ? a.tiles.slice(0, e, 1) : a.tiles;
    over_tile_threads(exec, g.rows, a.y.cols(), [&](Range rows, Range columns, int thread) {
      isa.tile_product({.a = side(a.x, rows.begin, 0, Layout::k_contiguous),
                        .b = weight_side(g.w, tiles, columns.begin),
                        .rows = rows.end - rows.begin,
                        .cols = columns.end - columns.begin,
                        .inner = a.x.cols(),
                        .epilogue = epilogue_of(a, g.b),
                        .row = rows.begin,
                        .column = columns.begin,
                        .scratch = scratch_of(exec, thread)});
    });
  });
}

void dx_on_tiles(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const IsaKernels& isa) {
  over_tile_threads(exec, g.rows, a.x.cols(), [&](Range rows, Range columns, int thread) {
    isa.tile_product({.a = side(a.dy, rows.begin, 0, Layout::k_contiguous),
                      .b = side(g.w, 0, columns.begin, Layout::k_strided),
                      .rows = rows.end - rows.begin,
                      .cols = columns.end - columns.begin,
                      .inner = a.dy.cols(),
                      .epilogue = epilogue_of(a),
                      .row = rows.begin,
                      .column = columns.begin,
                      .scratch = scratch_of(exec, thread)});
  });
}

void dw_on_tiles(const Exec& exec, const LinearBackwardArgs& a, const Group& g, const Tensor& dw,
                 const IsaKernels& isa) {
  over_tile_threads(exec, {0, dw.rows()}, dw.cols(), [&](Range outputs, Range columns, int thread) {
    isa.tile_product({.a = side(a.dy, g.rows.begin, outputs.begin, Layout::k_strided),
                      .b = side(a.x, g.rows.begin, columns.begin, Layout::k_strided),
                      .rows = outputs.end - outputs.begin,
                      .cols = columns.end - columns.begin,
                      .inner = g.rows.end - g.rows.begin,
                      .epilogue = {.y = matrix_of(dw), .add = a.dw.add},
                      .row = outputs.begin,
                      .column = columns.begin,
                      .scratch = scratch_of(exec, thread)});
  });
}

}  // namespace qkv::kernels::cpu
