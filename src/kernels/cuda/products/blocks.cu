// Quantisation, dequantisation, and the general form of products with weights in blocks: activations are rounded to int8,
// all else is exact in double, as in kernels/ref.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products/blocks.h"

namespace qkv::kernels::cuda {
namespace {

constexpr float kSmallest = 0x1p-100F;

// Rows of x as the numbers int8 stands for, in scratch; a block of threads per row.
void round_rows(const Exec& exec, const Tensor& x_in, int64_t block, double* out) {
  const View x(x_in);
  const int64_t width = x_in.cols(), blocks = width / block;
  each_thread(exec, x_in.rows() * blocks, [=] __device__(int64_t i) {
    const int64_t row = i / blocks, first = i % blocks * block, from = x.row(row) + first;
    float highest = 0;
    bool finite = true;
    for (int64_t k = 0; k < block; ++k) {
      const float v = x.get<float>(from + k);
      highest = fmaxf(highest, fabsf(v));
      finite = finite && isfinite(v);
    }
    double* y = out + row * width + first;
    const float by = 127 / highest, step = highest / 127;
    for (int64_t k = 0; k < block; ++k) {
      y[k] = !finite ? static_cast<double>(NAN)
             : highest < kSmallest
                 ? 0.0
                 : static_cast<double>(nearbyintf(x.get<float>(from + k) * by)) * static_cast<double>(step);
    }
  });
}

template <class R>
void multiply(const Exec& exec, const LinearArgs& a, const Tensor& y_out, int64_t first, int64_t rows,
              const double* x) {
  const View y(y_out), bias(a.b), residual(a.epilogue.residual), groups(a.groups);
  const Blocks w(a.w);
  const int64_t outputs = y_out.cols(), inner = a.x.cols(), group_count = a.groups.defined() ? a.groups.count() - 1 : 1;
  // A warp per output; lanes take every 32nd number, so a row's order is its own.
  each_thread(exec, rows * outputs * 32, [=] __device__(int64_t i) {
    const int64_t task = i / 32, lane = i % 32, r = task / outputs, n = first + r, o = task % outputs;
    int64_t g = 0;
    while (groups && g + 1 < group_count && n >= groups.id(g + 1)) ++g;
    double total = 0;
    for (int64_t k = lane; k < inner; k += 32) total += x[r * inner + k] * w.get<double>(g * outputs + o, k);
    total = warp_sum(total);
    if (lane != 0) return;
    if (bias) total += bias.get<double>((bias.rank == 2 ? bias.at(g) : 0) + o);
    const R sum = static_cast<R>(total);
    y.set(y.row(n) + o, residual ? residual.get<R>(residual.row(n) + o) + sum : sum);
  });
}

}  // namespace

void product_blocks_in_double(const Exec& exec, const LinearArgs& a, const Tensor& y) {
  const int64_t inner = a.x.cols();
  const int64_t block = !a.w.format().panels()   ? a.w.format().block_elements()
                        : a.w.format().group > 0 ? a.w.format().group
                                                 : inner;
  auto* x = reinterpret_cast<double*>(exec.scratch.data());
  const int64_t at_once = exec.scratch.count() / static_cast<int64_t>(sizeof(double)) / inner;
  for (int64_t first = 0; first < y.rows(); first += at_once) {
    const int64_t rows = std::min(at_once, y.rows() - first);
    round_rows(exec, a.x.slice(0, first, rows), block, x);
    in_real(y, [&](auto r) { multiply<decltype(r)>(exec, a, y, first, rows, x); });
  }
}

void dequantize(const Exec& exec, const DequantizeArgs& a) noexcept {
  const View y(a.y);
  const Blocks x(a.x);
  const int64_t width = a.y.cols();
  each_thread(exec, a.y.count(),
              [=] __device__(int64_t i) { y.set(y.row(i / width) + i % width, x.get<float>(i / width, i % width)); });
}

// A thread per row of a panel and group.
void quantize(const Exec& exec, const QuantizeArgs& a) noexcept {
  const View x(a.x);
  const bool nibbles = a.y.format().block == Block::q4;
  const PanelLayout layout(a.y.format(), a.y.cols());
  std::byte* data = a.y.data();
  const int64_t rows = a.y.dim(-2), each = (rows + kPanelRows - 1) / kPanelRows, groups = layout.groups(),
                group = layout.group(), bytes = layout.bytes(), count = rows > 0 ? a.y.rows() / rows * each : 0;
  if (cudaMemsetAsync(data, 0, static_cast<size_t>(count * bytes), stream_of(exec)) != cudaSuccess)
    return note_launch();
  each_thread(exec, count * kPanelRows * groups, [=] __device__(int64_t i) {
    const int64_t g = i % groups, lane = i / groups % kPanelRows, p = i / groups / kPanelRows;
    const int64_t in_matrix = p % each * kPanelRows + lane;
    const bool padding = in_matrix >= rows;
    const int64_t from = padding ? 0 : x.row(p / each * rows + in_matrix), first = g * group;
    float extreme = 0;
    for (int64_t k = first; k < first + group && !padding; ++k) {
      const float v = x.get<float>(from + k);
      if (!(fabsf(v) <= fabsf(extreme))) extreme = v;
    }
    const __nv_bfloat16 scale = fabsf(extreme) < kSmallest ? __float2bfloat16_rn(0)
                                : nibbles                  ? __float2bfloat16_rn(extreme / -8)
                                                           : __float2bfloat16_rn(fabsf(extreme) / 127);
    const int64_t group_bytes = nibbles ? 8 * group : 16 * group, columns = nibbles ? 8 : 4;
    const int64_t scales = g / 2 * (kPanelLine + 2 * group_bytes);
    std::byte* panel = data + p * bytes;
    *reinterpret_cast<__nv_bfloat16*>(panel + scales + 4 * lane + 2 * (g % 2)) = scale;
    const float step = __bfloat162float(scale), low = nibbles ? -8 : -127, high = nibbles ? 7 : 127;
    for (int64_t k = first; k < first + group; ++k) {
      const float q = step == 0 ? 0 : fminf(fmaxf(nearbyintf(x.get<float>(from + k) / step), low), high);
      const auto shifted = static_cast<unsigned>(static_cast<int>(q) + (nibbles ? 8 : 128));
      std::byte& at =
          panel[scales + kPanelLine + g % 2 * group_bytes + (k - first) / columns * kPanelLine + 4 * lane + k % 4];
      at = static_cast<std::byte>(nibbles && k % 8 >= 4 ? static_cast<unsigned>(at) | shifted << 4 : shifted);
    }
  });
}

}  // namespace qkv::kernels::cuda
