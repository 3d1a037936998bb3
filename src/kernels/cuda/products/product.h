// Matrix products d[m, n] = sum_k a[m, k] b[n, k] with any strides, whole or in groups.
//
// One order per output, whatever the number of rows: for bf16 operands a chain of k16 steps in the tensor core with an
// f32 accumulator, K never split; for others one chain of fused multiply-adds, k ascending.
#pragma once

#include <span>

#include "kernels/cuda/access.h"
#include "kernels/cuda/formulas.h"

namespace qkv::kernels::cuda {

struct Operand {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t row = 0, k = 0, group = 0;  // element strides
};

// What else a product of many rows does with its sums. All tensors are bf16, and s is the sum (+ bias) rounded to bf16:
//   forward    out = act(s) or gated(gate, s); pre, if there, keeps s
//   backward   s is the gradient of act(pre) or gated(gate, pre): out is that of pre, dgate that of gate
struct Fused {
  enum class Kind : uint8_t { none, forward, backward } kind = Kind::none;
  Gating form;
  View gate, pre, dgate;
};

struct ProductArgs {
  Operand a, b;
  int64_t m = 0, n = 0, k = 0;  // with groups: m or k is the most a group can have
  // k goes on with other operands, in the same chain; bf16, without groups and pieces.
  struct More {
    Operand a, b;
    int64_t k = 0;
  };
  More more[kMostInSet - 1];
  int more_count = 0;
  const int32_t* groups = nullptr;
  int64_t group_count = 1;
  enum class Grouped { none, rows, inner } grouped = Grouped::none;  // groups cut m, or k
  // out[m, n] = sum + bias, + residual; or added to what is there
  View out, bias, residual;
  View scale;                       // one number, or absent: sums are multiplied by it and `factor` before all else
  double factor = 1;                // only with scale
  int64_t out_columns = 0;          // if more than n, what lies beyond n in out may be written; bf16 without a bias
  int64_t pieces = 1, piece_k = 0;  // of k, each with an output of its own; not of product()
  int64_t out_group = 0;            // elements from one group's or piece's output to the next
  // Where a is transposed: also the sums of a over k, [pieces, ...], as if b had a row of ones. Not of product().
  float* sums_of_a = nullptr;
  int64_t sums_group = 0;  // numbers from one piece to the next
  bool add = false;

  template <class R>
  __device__ R scaled(R sum) const {
    return scale ? sum * (scale.get<R>(0) * static_cast<R>(factor)) : sum;
  }
  Fused fused;  // not of product()
  Kept kept;    // of sums and bias, before they join the residual; not of product()
};

inline Operand operand(const Tensor& t, bool transposed) {
  const int last = t.rank() - 1;
  Operand o{.data = t.data(), .dtype = t.dtype(), .row = t.stride(last - 1), .k = 1};
  if (transposed) std::swap(o.row, o.k);
  if (t.rank() == 3) o.group = t.stride(0);
  return o;
}

inline void set_groups(ProductArgs& p, const Tensor& groups, ProductArgs::Grouped how) {
  if (!groups.defined()) return;
  p.groups = groups.as<int32_t>();
  p.group_count = groups.count() - 1;
  p.grouped = how;
}

void product(const Exec& exec, const ProductArgs& args);  // in double if out is f64

// Another product in the same launch, of the same shapes but for `size`: columns, of weights b that share a, or, where a is
// transposed, rows, of other a that share b. All are plain: sums and bias, no groups.
struct Beside {
  Operand a, b;
  int64_t size = 0;
  View out, bias;
  float* sums_of_a = nullptr;
};

// Columns of its tiles: 128, or more where that is faster. Wider tiles read less for as many products, but fill the processors
// and the columns less evenly. The widest two are of both warpgroups, and nobody multiplies while they are finished: only where k
// is long.
constexpr int64_t kWideColumns = 192, kWiderColumns = 256, kWidestColumns = 320;
constexpr double tile_time(int64_t columns) {  // in that of 128 columns
  return columns == kWidestColumns ? 2.1 : columns == kWiderColumns ? 1.65 : columns == kWideColumns ? 1.3 : 1;
}
constexpr int64_t least_k(int64_t columns) {
  return columns == kWidestColumns ? 4096 : columns == kWiderColumns ? 8192 : 1;
}
// The same for many rows, with Hopper's copy engine and wgmma; false if it does not take these operands.
bool product_of_many_rows(const Exec& exec, const ProductArgs& args, std::span<const Beside> beside = {});
bool product_of_floats(const Exec& exec, const ProductArgs& args);  // of f32, in plain arithmetic

}  // namespace qkv::kernels::cuda
