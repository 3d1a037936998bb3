// A block of query rows of one segment and head, and what forward and backward do with it: scores against a block of
// keys, which of them a row sees, values and keys mixed by weights.
#pragma once

#include <array>
#include <optional>

#include "kernels/cpu/shared.h"
#include "kernels/ref/attention_scores.h"

namespace qkv::kernels::cpu {

struct Keys {
  int64_t begin = 0, end = 0;
};

class RowBlock {
 public:
  static constexpr int64_t kMost = 16;

  RowBlock(const AttentionInput& in, int64_t segment, int64_t first, int64_t count, int64_t head)
      : in_(in), segment_(segment), head_(head), count_(count) {
    begin_ = INT64_MAX;
    for (int64_t r = 0; r < count; ++r) {
      const ref::QueryRow<float>& row = rows_[static_cast<size_t>(r)].emplace(in, segment, first + r, head);
      if (row.begin() == row.end()) continue;
      begin_ = std::min(begin_, row.begin());
      end_ = std::max(end_, row.end());
    }
    begin_ = std::min(begin_, end_);
  }

  // Whether this kernel can do the work: f32 or bf16, keys and values also bytes, and a block of each fits the scratch.
  static bool takes(const Exec& exec, const AttentionInput& in, const Tensor& z) {
    return all_simple({&in.q, &z}) && stored_simply(in.k) && stored_simply(in.v) &&
           (kMost + kKeyBlock) * (in.v.cols() + in.q.cols()) * size_of(DType::f32) <= exec.scratch.dim(1);
  }

  int64_t count() const { return count_; }
  int64_t head() const { return head_; }
  int64_t begin() const { return begin_; }  // keys any row sees
  int64_t end() const { return end_; }
  const ref::QueryRow<float>& row(int64_t r) const { return *rows_[static_cast<size_t>(r)]; }
  int64_t first_row() const { return row(0).row(); }

  // Keys of the block at `key` that row r sees, and those any row may see.
  Keys seen(int64_t r, int64_t key) const { return cut(row(r).begin(), row(r).end(), key); }
  Keys seen(int64_t key) const { return cut(begin_, end_, key); }

  // out[r][j - key] = left row r . right key j, for the keys any row sees. Left is [N, H, D], right [M, G, D] or pages.
  template <const Forms& F>
  void scores(const Tensor& left, const Tensor& right, int64_t key, float* out) const {
    const Keys keys = seen(key);
    for_runs(right, keys, [&](const void* first, int64_t stride, Keys run) {
      const DotCall call{.x = at(left, first_row(), head_),
                         .w = first,
                         .y = out + (run.begin - key),
                         .x_stride = left.stride(0),
                         .w_stride = stride,
                         .y_stride = kKeyBlock,
                         .rows = count_,
                         .outputs = run.end - run.begin,
                         .inner = left.cols()};
      (left.dtype() == DType::f32 ? F.dots_f32 : F.dots_bf16)(call);
    });
  }

  // The same from rows and keys in f32, one after the other: left [rows, D], right [kKeyBlock, D].
  template <const Forms& F>
  void scores(const float* left, const float* right, int64_t key, float* out) const {
    const Keys keys = seen(key);
    const int64_t width = in_.q.cols();
    F.dots_f32({.x = left,
                .w = right + (keys.begin - key) * width,
                .y = out + (keys.begin - key),
                .x_stride = width,
                .w_stride = width,
                .y_stride = kKeyBlock,
                .rows = count_,
                .outputs = keys.end - keys.begin,
                .inner = width});
  }

  // The rows in f32, to[r]; and the keys of a block that any row sees, to[j - key]. The numbers are those stored.
  template <const Forms& F>
  void widen_rows(const Tensor& t, float* to) const {
    for (int64_t r = 0; r < count_; ++r) {
      F.scaled_row({to + r * t.cols()}, floats_at(t, (first_row() + r) * t.stride(0) + head_ * t.stride(1)), 1, false,
                   t.cols());
    }
  }
  template <const Forms& F>
  void widen_keys(const Tensor& t, const Tensor& scales, int64_t key, float* to) const {
    for_runs(t, seen(key), [&](const void* first, int64_t stride, Keys run) {
      for (int64_t j = run.begin; j < run.end; ++j) {
        const auto* from = static_cast<const std::byte*>(first) + (j - run.begin) * stride * size_of(t.dtype());
        float* row = to + (j - key) * t.cols();
        if (scales.defined()) {
          const int64_t slot = this->row(0).slot(j), kv_head = this->row(0).kv_head();
          F.widen_bytes(row, reinterpret_cast<const int8_t*>(from), scales.as<float>()[slot * t.dim(2) + kv_head],
                        t.cols());
        } else {
          F.scaled_row({row}, {const_cast<std::byte*>(from), t.dtype() == DType::bf16}, 1, false, t.cols());
        }
      }
    });
  }

  // Hides what row r does not see and, where the model has more than a scale, finishes the scores. Returns the scale
  // left to apply.
  float finish_scores(int64_t r, int64_t key, float* scores) const {
    const Keys keys = seen(r, key);
    for (int64_t j = key; j < keys.begin; ++j) scores[j - key] = ref::QueryRow<float>::kHidden;
    for (int64_t j = std::max(keys.end, key); j < key + kKeyBlock; ++j) scores[j - key] = ref::QueryRow<float>::kHidden;
    const float scale = static_cast<float>(in_.scale);
    if (!more_than_scale()) return scale;
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      scores[j - key] = row(r).biased(row(r).capped(scores[j - key] * scale), j);
    }
    return 1;
  }
  bool more_than_scale() const {
    return in_.softcap > 0 || in_.slopes.defined() || in_.bias.defined() || in_.mask.defined();
  }

  void drop(int64_t r, int64_t key, float* probs) const {
    const Keys keys = seen(r, key);
    for (int64_t j = keys.begin; j < keys.end; ++j) probs[j - key] *= row(r).keep(j);
  }

  // to[r] += sum_j weights[r][j - key] * right row j, keys in order; each row adds only what it sees.
  template <const Forms& F>
  void mix_values(const Tensor& right, int64_t key, const float* weights, float* to, int64_t width) const {
    mix_runs<F>(right.dtype(), key, weights, to, width, [&](Keys keys, auto&& f) { for_runs(right, keys, f); });
  }
  // The same from values in f32, [kKeyBlock, width].
  template <const Forms& F>
  void mix_values(const float* right, int64_t key, const float* weights, float* to, int64_t width) const {
    mix_runs<F>(DType::f32, key, weights, to, width, [&](Keys keys, auto&& f) {
      if (keys.begin < keys.end) f(right + (keys.begin - key) * width, width, keys);
    });
  }

  static const void* at(const Tensor& t, int64_t row, int64_t head) {
    return t.data() + (row * t.stride(0) + head * t.stride(1)) * size_of(t.dtype());
  }

 private:
  static bool stored_simply(const Tensor& t) { return simple(t) || (t.format().plain() && t.dtype() == DType::i8); }

  template <const Forms& F, class Runs>
  void mix_runs(DType dtype, int64_t key, const float* weights, float* to, int64_t width, Runs&& runs) const {
    bool alike = true;
    for (int64_t r = 1; r < count_; ++r) {
      alike = alike && seen(r, key).begin == seen(0, key).begin && seen(r, key).end == seen(0, key).end;
    }
    for (int64_t r = 0; r < count_; r += alike ? count_ : 1) {
      runs(seen(r, key), [&](const void* first, int64_t stride, Keys run) {
        const MixCall call{.a = weights + r * kKeyBlock + (run.begin - key),
                           .b = first,
                           .y = to + r * width,
                           .a_row = kKeyBlock,
                           .a_inner = 1,
                           .b_stride = stride,
                           .y_stride = width,
                           .rows = alike ? count_ : 1,
                           .inner = run.end - run.begin,
                           .cols = width,
                           .add = true};
        (dtype == DType::f32 ? F.mix_f32 : F.mix_bf16)(call);
      });
    }
  }

  static Keys cut(int64_t begin, int64_t end, int64_t key) {
    const int64_t from = std::max(begin, key), to = std::min(end, key + kKeyBlock);
    return {std::min(from, std::max(to, key)), std::max(to, key)};
  }

  // Calls f(address, stride, keys) for each stretch of keys that lie one after the other: all of them, or page by page.
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

  const AttentionInput& in_;
  int64_t segment_, head_, count_;
  int64_t begin_ = 0, end_ = 0;
  std::array<std::optional<ref::QueryRow<float>>, kMost> rows_;
};

// Row r, head h of [N, H, D] from f32.
template <const Forms& F>
void put_row(const Tensor& t, int64_t r, int64_t h, const float* from) {
  if (t.dtype() == DType::bf16) {
    F.narrow(t.as<uint16_t>() + r * t.stride(0) + h * t.stride(1), from, t.cols());
  } else {
    std::copy(from, from + t.cols(), t.as<float>() + r * t.stride(0) + h * t.stride(1));
  }
}

// Calls f(RowBlock, scratch of the thread) for all rows and heads, in blocks of at most kMost rows.
template <class Fn>
void for_row_blocks(const Exec& exec, const AttentionInput& in, Fn&& f) {
  const int64_t heads = in.q.dim(1), segments = in.segments.dim(0);
  const auto blocks_of = [&](int64_t n) {
    return (int64_t{ref::segments_of(in)[n].rows} + RowBlock::kMost - 1) / RowBlock::kMost;
  };
  int64_t tasks = 0;
  for (int64_t n = 0; n < segments; ++n) tasks += blocks_of(n) * heads;
  if (tasks == 0) return;
  const int64_t pieces = std::min<int64_t>(tasks, exec.pool->threads());
  exec.pool->run(pieces, [&](int64_t piece, int thread) {
    const int64_t first = piece * tasks / pieces, end = (piece + 1) * tasks / pieces;
    int64_t room = 0;
    float* scratch = scratch_of(exec, thread, &room);
    int64_t before = 0;
    for (int64_t n = 0; n < segments; ++n) {
      const int64_t blocks = blocks_of(n), here = blocks * heads;
      for (int64_t task = std::max(first, before); task < std::min(end, before + here); ++task) {
        const int64_t head = (task - before) / blocks, row = (task - before) % blocks * RowBlock::kMost;
        const int64_t count = std::min<int64_t>(RowBlock::kMost, ref::segments_of(in)[n].rows - row);
        f(RowBlock(in, n, row, count, head), scratch);
      }
      before += here;
    }
  });
}

}  // namespace qkv::kernels::cpu
