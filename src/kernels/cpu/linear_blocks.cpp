// y = x w^T + b where w is q8, q4 or GGUF blocks: activations are quantised to bytes, products are sums of integers
// (defined in isa/int_isa_kernels.h). Weights stay as they are in memory.
//
//   q8, q4           panels of sixteen rows, multiplied in place
//   GGUF, few rows   blocks multiplied in place, if the instruction set has a kernel for it
//   GGUF             two panels of sixteen rows at a time are unpacked to bytes and serve all rows of x
#include "core/panels.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"

namespace qkv::kernels::cpu {
namespace {

// Up to so many rows of activations, unpacking a weight does not pay.
constexpr int64_t kFewRows = 3;
// Panels a thread multiplies at once.
constexpr int64_t kPanelsAtOnce = 8, kPanelsUnpacked = 2;
// What rows and their sums may take of the L2 cache while panels stream through.
constexpr int64_t kCacheBytes = 1 << 20;

IntShape shape_of(const Tensor& w) {
  const int64_t inner = w.cols();
  if (w.format().panels()) {
    const PanelLayout layout(w.format(), inner);
    return {.inner = inner,
            .block = layout.group(),
            .part = layout.group(),
            .offset = static_cast<int32_t>(layout.offset())};
  }
  switch (w.format().block) {
    case Block::q8_0:
      return {.inner = inner, .block = 32, .part = 32, .offset = 128};
    case Block::q4_0:
      return {.inner = inner, .block = 32, .part = 32, .offset = 8};
    case Block::q5_0:
      return {.inner = inner, .block = 32, .part = 32, .offset = 16};
    case Block::q4_1:
    case Block::q5_1:
      return {.inner = inner, .block = 32, .part = 32, .minima = true};
    case Block::q2_k:
      return {.inner = inner, .block = 256, .part = 16, .minima = true, .subscales = true};
    case Block::q3_k:
      return {.inner = inner, .block = 256, .part = 16, .offset = 4, .subscales = true};
    case Block::q4_k:
    case Block::q5_k:
      return {.inner = inner, .block = 256, .part = 32, .minima = true, .subscales = true, .wide = true};
    case Block::q6_k:
      return {.inner = inner, .block = 256, .part = 16, .offset = 32, .subscales = true, .wide = true};
    case Block::mxfp4:
      return {.inner = inner, .block = 32, .part = 32, .offset = 12};
    case Block::none:
    case Block::q8:
    case Block::q4:
      break;
  }
  return {};
}

// Index of a GGUF format in the tables of IntIsaKernels.
int gguf_index(Block block) {
  static_assert(static_cast<int>(Block::q8_0) == 1 && static_cast<int>(Block::mxfp4) == IntIsaKernels::kGguf);
  return static_cast<int>(block) - static_cast<int>(Block::q8_0);
}

class BlockProduct {
 public:
  BlockProduct(const Exec& exec, const LinearArgs& a, const IsaKernels& isa)
      : exec_(exec), a_(a), isa_(isa), ints_(int_isa_kernels(isa)), shape_(shape_of(a.w)) {
    const int64_t bytes = exec.scratch.dim(1);
    rows_at_ = kMostRows * static_cast<int64_t>(sizeof(IntRow));
    rows_each_ = std::min(kMostRows, bytes / 4 / shape_.row_bytes());
    sums_at_ = rows_at_ + rows_each_ * shape_.row_bytes();
    panels_at_ = sums_at_ + kMostRows * kPanelsAtOnce * kPanel * size_of(DType::f32);
    const bool unpacks = !a.w.format().panels();
    takes_ = all_float({&a.x, &a.y, &a.epilogue.gate, &a.epilogue.pre, &a.epilogue.residual}) && rows_each_ > 0 &&
             panels_at_ + (unpacks ? kPanelsUnpacked * shape_.panel_bytes() : 0) <= bytes;
  }

  // Whether the kernels handle the dtypes and the rows fit the scratch memory.
  bool takes() const { return takes_; }

  void run(const Group& g) {
    const int64_t threads = exec_.pool->threads();
    const int64_t at_once = std::min(kMostRows, rows_each_ * threads);
    for (int64_t r = g.rows.begin; r < g.rows.end;) {
      // Every thread quantises a few rows for itself: cheaper than a barrier.
      const int64_t left = g.rows.end - r, alone = std::min<int64_t>(4, rows_each_);
      const Range rows{r, r + (left <= alone ? left : std::min(left, at_once))};
      if (left > alone) quantize_together(rows);
      multiply(g, rows, left <= alone);
      r = rows.end;
    }
  }

 private:
  static constexpr int64_t kMostRows = 1024;  // of one round over the weights

  std::byte* scratch(int64_t thread) const { return exec_.scratch.data() + thread * exec_.scratch.dim(1); }

  // Row i of a round in a thread's scratch memory.
  IntRow row_in(int64_t thread, int64_t i) const {
    std::byte* at = scratch(thread) + rows_at_ + i * shape_.row_bytes();
    auto* scales = reinterpret_cast<float*>(at + shape_.inner);
    std::byte* sums = at + shape_.inner + 4 * shape_.blocks();
    return {.q = reinterpret_cast<int8_t*>(at),
            .scales = scales,
            .sums = reinterpret_cast<int32_t*>(sums),
            .part_sums = reinterpret_cast<int16_t*>(sums)};
  }
  void quantize(int64_t row, const IntRow& to) const {
    ints_.quantize_row({.x = float_row_at(a_.x, row * a_.x.stride(0)), .shape = shape_, .row = to});
  }
  // A multiple of sixteen if it fits, so that the rows of a tile are evenly spaced.
  int64_t rows_per_thread(Range rows) const {
    const int64_t tiles = exec_.pool->threads() * kPanel;
    return std::min((rows.end - rows.begin + tiles - 1) / tiles * kPanel, rows_each_);
  }
  // Rows kept in cache while panels stream through. Unpacking a panel again costs more than rows from memory: then all.
  int64_t rows_at_once(Range rows) const {
    const int64_t count = rows.end - rows.begin, each = shape_.row_bytes() + kPanelsAtOnce * kPanel * 4;
    if (!a_.w.format().panels()) return count;
    const int64_t pieces = (count * each + kCacheBytes - 1) / kCacheBytes, two_tiles = 2 * kPanel;
    return ((count + pieces - 1) / pieces + two_tiles - 1) / two_tiles * two_tiles;
  }
  void quantize_together(Range rows) const {
    const int64_t each = rows_per_thread(rows);
    exec_.pool->run(exec_.pool->threads(), [&](int64_t piece, int) {
      for (int64_t i = 0; i < each && rows.begin + piece * each + i < rows.end; ++i) {
        quantize(rows.begin + piece * each + i, row_in(piece, i));
      }
    });
  }

  void multiply(const Group& g, Range rows, bool alone) const {
    const int64_t count = rows.end - rows.begin, panels = (a_.y.cols() + kPanel - 1) / kPanel;
    const int64_t each = rows_per_thread(rows), threads = exec_.pool->threads();
    const bool by_panels = panels >= 2 * threads || panels * kPanel >= count;
    exec_.pool->run(threads, [&](int64_t piece, int thread) {
      auto* x = reinterpret_cast<IntRow*>(scratch(thread));
      for (int64_t i = 0; i < count; ++i) {
        x[i] = alone ? row_in(thread, i) : row_in(i / each, i % each);
        if (alone) quantize(rows.begin + i, x[i]);
      }
      const auto part = [&](int64_t size) { return Range{piece * size / threads, (piece + 1) * size / threads}; };
      const Range r = by_panels ? Range{0, count} : part(count), p = by_panels ? part(panels) : Range{0, panels};
      if (r.begin == r.end) return;
      const int64_t at_once = rows_at_once(r);
      for (int64_t row = r.begin; row < r.end; row += at_once) {
        for (int64_t first = p.begin; first < p.end; first += kPanelsAtOnce) {
          some_panels(g, {rows.begin + row, rows.begin + std::min(row + at_once, r.end)}, x + row,
                      {first, std::min(first + kPanelsAtOnce, p.end)}, thread);
        }
      }
    });
  }

  // Rows of x times at most kPanelsAtOnce panels, and the epilogue.
  void some_panels(const Group& g, Range rows, const IntRow* x, Range panels, int thread) const {
    const Range columns{panels.begin * kPanel, std::min(panels.end * kPanel, a_.y.cols())};
    const EpilogueCall epilogue = epilogue_of(a_, g.b);
    const bool direct = writes_directly(epilogue);
    IntCall call{
        .x = x,
        .y = direct ? at_f32(a_.y, rows.begin, columns.begin) : reinterpret_cast<float*>(scratch(thread) + sums_at_),
        .rows = rows.end - rows.begin,
        .panels = panels.end - panels.begin,
        .outputs = columns.end - columns.begin,
        .y_stride = direct ? a_.y.stride(0) : kPanelsAtOnce * kPanel,
        .shape = shape_};
    if (g.w.format().panels()) {
      call.panel_bytes = PanelLayout(g.w.format(), shape_.inner).bytes();
      call.w = g.w.data() + panels.begin * call.panel_bytes;
      (g.w.format().block == Block::q8 ? ints_.q8 : ints_.q4)(call);
    } else {
      multiply_gguf(g.w, call, columns, thread);
    }
    for (int64_t i = 0; i < call.rows && !direct; ++i) {
      isa_.epilogue_row(epilogue, rows.begin + i, columns.begin, call.y + i * call.y_stride, call.outputs);
    }
  }

  void multiply_gguf(const Tensor& w, IntCall call, Range columns, int thread) const {
    const int index = gguf_index(w.format().block);
    const int64_t row_bytes = w.format().bytes_for(shape_.inner);
    const auto* weights = reinterpret_cast<const uint8_t*>(w.data()) + columns.begin * row_bytes;
    int64_t o = 0;
    if (const auto in_place = ints_.in_place[index]; in_place != nullptr && call.rows <= kFewRows) {
      const int64_t whole = call.outputs / kPanel * kPanel;
      for (int64_t r = 0; r < call.rows; ++r) {
        in_place({.x = call.x[r],
                  .w = weights,
                  .y = call.y + r * call.y_stride,
                  .row_bytes = row_bytes,
                  .outputs = whole,
                  .shape = shape_});
      }
      o = whole;
    }
    std::byte* unpacked = scratch(thread) + panels_at_;
    call.panel_bytes = shape_.panel_bytes();
    call.w = unpacked;
    const int64_t outputs = call.outputs;
    float* y = call.y;
    for (; o < outputs; o += kPanelsUnpacked * kPanel) {
      call.y = y + o;
      call.outputs = std::min(outputs - o, kPanelsUnpacked * kPanel);
      call.panels = (call.outputs + kPanel - 1) / kPanel;
      for (int64_t p = 0; p < call.panels; ++p) {
        ints_.unpack[index]({.w = weights + (o + p * kPanel) * row_bytes,
                             .row_bytes = row_bytes,
                             .rows = std::min(call.outputs - p * kPanel, kPanel),
                             .panel = unpacked + p * call.panel_bytes,
                             .shape = shape_});
      }
      ints_.unpacked(call);
    }
  }

  const Exec& exec_;
  const LinearArgs& a_;
  const IsaKernels& isa_;
  const IntIsaKernels& ints_;
  IntShape shape_;
  int64_t rows_each_ = 0;                              // rows of x that fit a thread's scratch
  int64_t rows_at_ = 0, sums_at_ = 0, panels_at_ = 0;  // byte offsets into it, after a round's list of rows
  bool takes_ = false;
};

}  // namespace

bool linear_with_blocks(const Exec& exec, const LinearArgs& a, const IsaKernels& isa) {
  BlockProduct product(exec, a, isa);
  if (!product.takes()) return false;
  for_groups(a.groups, a.y.rows(), a.w, a.b, [&](const Group& g, int64_t) { product.run(g); });
  return true;
}

}  // namespace qkv::kernels::cpu
