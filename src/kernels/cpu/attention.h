// A block of query rows that read one key/value head, shared by forward and backward: scores against a block of keys,
// which keys a row sees, weighted sums of values and keys.
#pragma once

#include <array>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/shared.h"
#include "kernels/ref/attention_scores.h"

namespace qkv::kernels::cpu {

struct Keys {
  int64_t begin = 0, end = 0;
};

// A matrix of kMost rows x kKeyBlock keys, stored by rows or by columns (transposed).
struct Tile {
  float* data = nullptr;
  int64_t row_stride = 0, key_stride = 0;
  static Tile rows(float* data) { return {data, kKeyBlock, 1}; }
  static Tile columns(float* data) { return {data, 1, kColumns}; }
  float& operator()(int64_t r, int64_t j) const { return data[r * row_stride + j * key_stride]; }
};

// Rows [row, row + rows) of a segment, for each of `heads` query heads that share a key/value head.
struct BlockRows {
  int64_t segment = 0, row = 0, rows = 0, head = 0, heads = 1;
};

class RowBlock {
 public:
  static constexpr int64_t kMost = kColumns, kFew = 8;

  // Up to `few` rows are processed one by one, more as columns (a row is a SIMD lane). The bits are the same.
  RowBlock(const AttentionInput& in, const BlockRows& b, const IsaKernels& isa, int64_t few = kFew)
      : in_(in), isa_(isa), segment_(b.segment), count_(b.rows * b.heads), columns_(count_ > few) {
    begin_ = INT64_MAX;
    for (int64_t r = 0; r < count_; ++r) {
      const ref::QueryRow<float>& row =
          rows_[static_cast<size_t>(r)].emplace(in, b.segment, b.row + r % b.rows, b.head + r / b.rows);
      if (row.begin() == row.end()) continue;
      begin_ = std::min(begin_, row.begin());
      end_ = std::max(end_, row.end());
    }
    begin_ = std::min(begin_, end_);
  }

  // Whether this kernel handles the dtypes (f32 or bf16, keys and values also i8) and the scratch memory is large
  // enough.
  static bool takes(const Exec& exec, const AttentionInput& in, const Tensor& z) {
    return all_float({&in.q, &z}) && is_cached_float(in.k) && is_cached_float(in.v) &&
           (3 * kMost + 3 * kKeyBlock) * (in.v.cols() + in.q.cols() + 2 * kColumns) * size_of(DType::f32) <=
               exec.scratch.dim(1);
  }

  const IsaKernels& isa() const { return isa_; }
  int64_t count() const { return count_; }
  int64_t segment() const { return segment_; }
  int64_t begin() const { return begin_; }  // keys any row sees
  int64_t end() const { return end_; }
  const ref::QueryRow<float>& row(int64_t r) const { return *rows_[static_cast<size_t>(r)]; }

  bool columns() const { return columns_; }
  Tile tile(float* data) const { return columns() ? Tile::columns(data) : Tile::rows(data); }

  // Keys of the block at `key` that row r sees, that any row sees, that all rows see.
  Keys seen(int64_t r, int64_t key) const { return cut(row(r).begin(), row(r).end(), key); }
  Keys seen(int64_t key) const { return cut(begin_, end_, key); }
  Keys seen_by_all(int64_t key) const {
    int64_t from = 0, to = INT64_MAX;
    for (int64_t r = 0; r < count_; ++r) {
      from = std::max(from, row(r).begin());
      to = std::min(to, row(r).end());
    }
    return cut(from, to, key);
  }
  // The bounds of each column, relative to `key`. Returns whether all rows see the same keys.
  bool column_bounds(int64_t key, float* begin, float* end) const {
    const Keys any = seen(key);
    bool alike = true;
    for (int64_t r = 0; r < kMost; ++r) {
      const Keys keys = r < count_ ? seen(r, key) : Keys{key, key};
      begin[r] = static_cast<float>(keys.begin - key);
      end[r] = static_cast<float>(keys.end - key);
      alike = alike && (r >= count_ || (keys.begin == any.begin && keys.end == any.end));
    }
    return alike;
  }

  // Widens to f32: the rows, to[r]; the keys of a block that any row sees, to[j - key].
  void widen_rows(const Tensor& t, float* to) const {
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t from = row(r).row() * t.stride(0) + row(r).head() * t.stride(1);
      isa_.scaled_row({to + r * t.cols()}, float_row_at(t, from), 1, false, t.cols());
    }
  }
  void copy_rows(const Tensor& t, uint16_t* to) const {
    for (int64_t r = 0; r < count_; ++r) {
      const auto* from = static_cast<const uint16_t*>(at(t, row(r).row(), row(r).head()));
      std::copy(from, from + t.cols(), to + r * t.cols());
    }
  }
  void widen_keys(const Tensor& t, const Tensor& scales, int64_t key, float* to) const {
    for_runs(t, seen(key), [&](const void* first, int64_t stride, Keys run) {
      float* wide = to + (run.begin - key) * t.cols();
      if (scales.defined()) {
        return isa_.widen_bytes({.y = wide,
                                 .x = static_cast<const int8_t*>(first),
                                 .scales = scales.as<float>() + row(0).slot(run.begin) * t.dim(2) + row(0).kv_head(),
                                 .x_stride = stride,
                                 .scale_stride = t.dim(2),
                                 .rows = run.end - run.begin,
                                 .cols = t.cols()});
      }
      const auto* from = static_cast<const std::byte*>(first);
      const int64_t bytes = stride * size_of(t.dtype());
      for (int64_t j = run.begin; j < run.end; ++j, from += bytes, wide += t.cols()) {
        isa_.scaled_row({wide}, {const_cast<std::byte*>(from), t.dtype() == DType::bf16}, 1, false, t.cols());
      }
    });
  }

  // Calls f(address, stride, keys) for each run of keys with one stride: all of them, or page by page.
  template <class Fn>
  void for_runs(const Tensor& t, Keys keys, Fn&& f) const {
    const int64_t kv_head = row(0).kv_head();
    if (!in_.table.defined()) {
      if (keys.begin < keys.end) f(at(t, row(0).slot(keys.begin), kv_head), t.stride(0), keys);
      return;
    }
    const int64_t page = t.dim(1);
    for (int64_t j = keys.begin; j < keys.end;) {
      const int64_t slot = row(0).slot(j), end = std::min(keys.end, j + page - j % page);
      const int64_t offset = slot / page * t.stride(0) + slot % page * t.stride(1) + kv_head * t.stride(2);
      f(t.data() + offset * size_of(t.dtype()), t.stride(1), Keys{j, end});
      j = end;
    }
  }

  // Applies cap, slopes, bias and mask to the scores of row r, if any. Returns the scale left to apply.
  float apply_score_rules(int64_t r, int64_t key, const Tile& scores) const {
    const float scale = static_cast<float>(in_.scale);
    if (!more_than_scale()) return scale;
    const Keys keys = seen(r, key);
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      float& x = scores(r, j - key);
      x = row(r).biased(row(r).capped(x * scale), j);
    }
    return 1;
  }
  // Sets what row r does not see of its kKeyBlock elements to `value`.
  void mask_hidden(int64_t r, int64_t key, float* row_of_tile, float value) const {
    const Keys keys = seen(r, key);
    std::fill(row_of_tile, row_of_tile + (keys.begin - key), value);
    std::fill(row_of_tile + (keys.end - key), row_of_tile + kKeyBlock, value);
  }
  bool more_than_scale() const {
    return in_.softcap > 0 || in_.slopes.defined() || in_.bias.defined() || in_.mask.defined();
  }

  void apply_dropout(int64_t r, int64_t key, const Tile& probs) const {
    const Keys keys = seen(r, key);
    DropoutFactors kept(in_.dropout, row(r).row());
    const uint64_t head = static_cast<uint64_t>(row(r).head()) << 32;
    for (int64_t j = keys.begin; j < keys.end; ++j) probs(r, j - key) *= kept(head | static_cast<uint64_t>(j));
  }

  // to[r] += sum_j weights(r, j) * right[j], keys in order; each row adds only the keys it sees.
  void matmul_values(const Tensor& right, int64_t key, const Tile& weights, float* to) const {
    matmul_runs(right.cols(), right.dtype(), key, weights, to, [&](Keys keys, auto&& f) { for_runs(right, keys, f); });
  }
  // The same with values in f32, [kKeyBlock, width].
  void matmul_values(const float* right, int64_t width, int64_t key, const Tile& weights, float* to) const {
    matmul_runs(width, DType::f32, key, weights, to, [&](Keys keys, auto&& f) {
      if (keys.begin < keys.end) f(right + (keys.begin - key) * width, width, keys);
    });
  }

  static const void* at(const Tensor& t, int64_t row, int64_t head) {
    return t.data() + (row * t.stride(0) + head * t.stride(1)) * size_of(t.dtype());
  }

 private:
  static bool is_cached_float(const Tensor& t) { return is_float(t) || (t.format().plain() && t.dtype() == DType::i8); }

  static Keys cut(int64_t begin, int64_t end, int64_t key) {
    const int64_t from = std::max(begin, key), to = std::min(end, key + kKeyBlock);
    return {std::min(from, std::max(to, key)), std::max(to, key)};
  }

  // All rows together for the keys all see, row by row for the keys before and after them.
  template <class Runs>
  void matmul_runs(int64_t width, DType dtype, int64_t key, const Tile& weights, float* to, Runs&& runs) const {
    const auto multiply = [&](int64_t r, int64_t rows, Keys keys) {
      runs(keys, [&](const void* first, int64_t stride, Keys run) {
        const MatmulNnCall call{.a = &weights(r, run.begin - key),
                                .b = first,
                                .y = to + r * width,
                                .a_row = weights.row_stride,
                                .a_inner = weights.key_stride,
                                .b_stride = stride,
                                .y_stride = width,
                                .rows = rows,
                                .inner = run.end - run.begin,
                                .cols = width,
                                .add = true};
        (dtype == DType::f32 ? isa_.small_matmul_nn_f32 : isa_.small_matmul_nn_bf16)(call);
      });
    };
    const Keys all = seen_by_all(key);
    if (all.begin == all.end) {
      for (int64_t r = 0; r < count_; ++r) multiply(r, 1, seen(r, key));
      return;
    }
    for (int64_t r = 0; r < count_; ++r) multiply(r, 1, {seen(r, key).begin, all.begin});
    multiply(0, count_, all);
    for (int64_t r = 0; r < count_; ++r) multiply(r, 1, {all.end, seen(r, key).end});
  }

  const AttentionInput& in_;
  const IsaKernels& isa_;
  int64_t segment_, count_, begin_ = 0, end_ = 0;
  bool columns_;
  std::array<std::optional<ref::QueryRow<float>>, kMost> rows_;
};

// Transposes rows of f32, or of pairs of bf16, to columns.
inline void to_columns(float* y, const float* x, int64_t rows, int64_t cols, const IsaKernels& isa) {
  isa.to_columns(reinterpret_cast<uint32_t*>(y), reinterpret_cast<const uint32_t*>(x), cols, rows, cols);
}

// Whether products a . b multiply pairs of bf16, in matmul_nt_bf16's own order of additions. All others have the order
// of f32, whatever the storage.
inline bool multiplies_pairs_nt(const Tensor& a, const Tensor& b, const IsaKernels& isa) {
  constexpr int64_t kMost = 1024;  // beyond it matmul_nt_bf16 splits sums into blocks
  return isa.matmul_columns_bf16 != nullptr && a.dtype() == DType::bf16 && b.dtype() == DType::bf16 &&
         a.cols() % 2 == 0 && a.cols() <= kMost;
}
// Whether matmul_nt_bf16 computes these products.
inline bool uses_matmul_nt_bf16(const Tensor& a, const Tensor& b, const IsaKernels& isa) {
  return multiplies_pairs_nt(a, b, isa) ||
         (isa.matmul_columns_bf16 == nullptr && a.dtype() == DType::bf16 && b.dtype() == DType::bf16);
}

// The rows of a block as the left operand of products with keys or values: by rows, or as columns.
class LeftRows {
 public:
  static int64_t scratch_floats(const Tensor& t) { return 2 * RowBlock::kMost * t.cols(); }

  LeftRows(const RowBlock& block, const Tensor& t, const Tensor& right, float* scratch)
      : block_(block),
        right_(right),
        width_(t.cols()),
        pairs_(multiplies_pairs_nt(t, right, block.isa())),
        narrow_(block.columns() ? pairs_ : uses_matmul_nt_bf16(t, right, block.isa())),
        rows_(scratch),
        columns_(scratch + RowBlock::kMost * width_) {
    if (narrow_) {
      block.copy_rows(t, reinterpret_cast<uint16_t*>(rows_));
    } else {
      block.widen_rows(t, rows_);
    }
    if (block.columns()) to_columns(columns_, rows_, block.count(), pairs_ ? width_ / 2 : width_, block.isa());
  }

  // out = left . right for the keys any row sees, stored as block.tile(). `wide`: scratch for a block of keys.
  void multiply(const Tensor& scales, int64_t key, float* wide, float* out) const {
    const IsaKernels& isa = block_.isa();
    const auto multiply_run = [&](const void* first, int64_t stride, Keys run) {
      const int64_t count = run.end - run.begin;
      if (block_.columns()) {
        return (pairs_ ? isa.matmul_columns_bf16 : isa.matmul_columns)({.columns = columns_,
                                                                        .rows = first,
                                                                        .y = out + (run.begin - key) * kColumns,
                                                                        .row_stride = stride,
                                                                        .y_stride = kColumns,
                                                                        .count = count,
                                                                        .inner = width_});
      }
      (narrow_ ? isa.matmul_nt_bf16 : isa.matmul_nt_f32)({.x = rows_,
                                                          .w = first,
                                                          .y = out + (run.begin - key),
                                                          .x_stride = width_,
                                                          .w_stride = stride,
                                                          .y_stride = kKeyBlock,
                                                          .rows = block_.count(),
                                                          .outputs = count,
                                                          .inner = width_});
    };
    const Keys keys = block_.seen(key);
    if (narrow_ || right_.dtype() == DType::f32) return block_.for_runs(right_, keys, multiply_run);
    block_.widen_keys(right_, scales, key, wide);
    if (keys.begin < keys.end) multiply_run(wide + (keys.begin - key) * width_, width_, keys);
  }

 private:
  const RowBlock& block_;
  const Tensor& right_;
  int64_t width_;
  bool pairs_, narrow_;  // narrow: both operands stay bf16
  float *rows_, *columns_;
};

// t[r][h] = from, t: [N, H, D].
inline void put_row(const Tensor& t, int64_t r, int64_t h, const float* from, const IsaKernels& isa) {
  isa.scaled_row(float_row_at(t, r * t.stride(0) + h * t.stride(1)), {const_cast<float*>(from)}, 1, false, t.cols());
}

// Calls f(BlockRows) for all rows and heads: at most kMost rows of a head, or, where a segment has few rows (decoding),
// the rows of up to `most_heads` heads that read the same keys and values.
template <class Fn>
void list_row_blocks(const AttentionInput& in, int64_t most_heads, Fn&& f) {
  const int64_t heads = in.q.dim(1);
  const auto* kv_map = in.kv_map.as<int32_t>();
  for (int64_t n = 0; n < in.segments.dim(0); ++n) {
    const int64_t rows = ref::segments_of(in)[n].rows;
    if (rows == 0) continue;
    const int64_t together = std::clamp<int64_t>(RowBlock::kMost / rows, 1, most_heads);
    for (int64_t h = 0, next = 0; h < heads; h = next) {
      for (next = h + 1; next < heads && next - h < together && kv_map[next] == kv_map[h];) ++next;
      for (int64_t row = 0; row < rows; row += RowBlock::kMost) {
        f(BlockRows{n, row, std::min(RowBlock::kMost, rows - row), h, next - h});
      }
    }
  }
}

// Calls f with the tiles configured, if the instruction set has tiles.
template <class Fn>
void with_tiles(const IsaKernels& isa, Fn&& f) {
  if (isa.with_tiles == nullptr) return f();
  isa.with_tiles([](void* what) { (*static_cast<std::remove_reference_t<Fn>*>(what))(); }, &f);
}

// A bump allocator over a thread's scratch memory, aligned to cache lines.
class Workspace {
 public:
  Workspace(const Exec& exec, int thread) : at_(scratch_of(exec, thread)), left_(scratch_floats(exec)) {}
  float* take(int64_t floats) {
    float* taken = at_;
    const int64_t lines = (floats + 15) / 16 * 16;
    at_ += lines;
    left_ -= lines;
    return taken;
  }
  int64_t left() const { return left_; }

 private:
  float* at_;
  int64_t left_;
};

// For every thread: work = make(Workspace), then work(RowBlock) for its blocks. Every thread gets a range of blocks
// with about the same number of row-key pairs; the split changes no bit.
template <class Make>
void for_row_blocks(const Exec& exec, const AttentionInput& in, const IsaKernels& isa, Make&& make) {
  const auto cost_of = [&](const BlockRows& b) {
    const ref::QueryRow<float> first(in, b.segment, b.row, b.head), last(in, b.segment, b.row + b.rows - 1, b.head);
    return (last.end() - first.begin() + kKeyBlock) * b.rows * b.heads;
  };
  const int64_t threads = exec.pool->threads();
  int64_t most_heads = 2 * RowBlock::kMost, blocks = 0, total = 0;
  while (blocks < 2 * threads && most_heads > 1) {  // rather read keys twice than leave a thread idle
    most_heads /= 2;
    blocks = 0;
    list_row_blocks(in, most_heads, [&](const BlockRows&) { ++blocks; });
  }
  if (blocks == 0) return;
  list_row_blocks(in, most_heads, [&](const BlockRows& b) { total += cost_of(b); });
  // Tiles process any number of rows at the cost of sixteen.
  const int64_t few = isa.with_tiles != nullptr && in.q.dtype() == DType::bf16 ? 0 : RowBlock::kFew;
  exec.pool->run(threads, [&](int64_t piece, int thread) {
    with_tiles(isa, [&] {
      Workspace workspace(exec, thread);
      auto work = make(workspace);
      int64_t before = 0;
      list_row_blocks(in, most_heads, [&](const BlockRows& b) {
        const int64_t cost = cost_of(b), owner = (2 * before + cost) * threads / (2 * total);
        before += cost;
        if (owner == piece) work(RowBlock(in, b, isa, few));
      });
    });
  });
}

}  // namespace qkv::kernels::cpu
