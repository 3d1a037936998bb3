// Attention backward, f32 and bf16; the formulas stand in kernels/ref/attention_backward.cpp. Two walks, so that every
// gradient has one owner and one order of additions: dq by blocks of rows over their keys, dk and dv by blocks of keys
// over the heads that read them and their rows. Both recompute scores and probabilities from q, k and LSE.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;

// Each key belongs to one segment at most, so a block of keys has one owner.
bool keys_have_one_owner(const AttentionInput& in) {
  int64_t end = 0;
  for (int64_t n = 0; n < in.segments.dim(0); ++n) {
    const Segment& s = ref::segments_of(in)[n];
    if (s.keys == 0) continue;
    if (s.first_key < end) return false;
    end = int64_t{s.first_key} + s.keys;
  }
  return true;
}

constexpr int64_t kTile = RowBlock::kMost * kKeyBlock;

float lse_of(const AttentionBackwardArgs& a, const Row& row) {
  const float lse = ref::In<float>(a.lse, {row.row()})[row.head()];
  return lse == Row::kHidden ? 0 : lse;
}
float delta_of(const AttentionBackwardArgs& a, const Row& row) {
  return ref::In<float>(a.delta, {row.row()})[row.head()];
}

// A cap lets 1 - tanh^2 of a score's gradient through; raw: products q . k.
void through_cap(const AttentionInput& in, const RowBlock& block, int64_t key, const Tile& raw, const Tile& ds) {
  const float cap = static_cast<float>(in.softcap), scale = static_cast<float>(in.scale);
  for (int64_t r = 0; r < block.count(); ++r) {
    const Keys seen = block.seen(r, key);
    for (int64_t j = seen.begin - key; j < seen.end - key; ++j) {
      const float t = std::tanh(raw(r, j) * scale / cap);
      ds(r, j) *= 1 - t * t;
    }
  }
}

// What a block of rows and a block of keys give each other, from the products q . k and dz . v.
class PairGradients {
 public:
  float probs[kTile];  // q . k on the way in, p keep on the way out (rows only)
  float ds[kTile];     // dz . v on the way in, d loss / d score without the scale on the way out

  // Rows one after the other; zeros where a row sees nothing.
  template <const Forms& F>
  void find_rows(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key) {
    const Tile p = Tile::rows(probs), d = Tile::rows(ds);
    begin(a, block, key, p, d);
    for (int64_t r = 0; r < block.count(); ++r) {
      GradientStep step{.scores = &p(r, 0), .dp = &d(r, 0), .probs = &p(r, 0), .ds = &d(r, 0)};
      step.scale = block.finish_scores(r, key, p);
      block.cover(r, key, &p(r, 0), Row::kHidden);
      step.lse = lse_of(a, block.row(r));
      step.delta = delta_of(a, block.row(r));
      F.gradient_step(step);
      block.cover(r, key, &p(r, 0), 0);
      block.cover(r, key, &d(r, 0), 0);
      if (a.in.dropout.p > 0) block.drop(r, key, p);
    }
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::rows(raw_), d);
  }

  // The gradients of the scores alone, rows as columns.
  template <const Forms& F>
  void find_columns(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key) {
    const Tile p = Tile::columns(probs), d = Tile::columns(ds);
    begin(a, block, key, p, d);
    const Keys keys = block.seen(key);
    GradientColumns step{.scores = probs, .dp = ds, .ds = ds, .from = keys.begin - key, .to = keys.end - key};
    block.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block.count(); ++r) {
      step.scale = block.finish_scores(r, key, p);
      step.lse[r] = lse_of(a, block.row(r));
      step.delta[r] = delta_of(a, block.row(r));
    }
    F.gradient_columns(step);
    if (a.in.softcap > 0) through_cap(a.in, block, key, Tile::columns(raw_), d);
  }

 private:
  void begin(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, const Tile& p, const Tile& d) {
    if (a.in.softcap > 0) std::copy(p.data, p.data + kTile, raw_);
    for (int64_t r = 0; r < block.count() && a.in.dropout.p > 0; ++r) block.drop(r, key, d);
  }

  float raw_[kTile];
};

// In the order of the scores' own products: where a row sees one key only, its score gradient is then exactly zero.
template <const Forms& F>
void find_delta(const Exec& exec, const AttentionBackwardArgs& a) {
  const int64_t heads = a.z.dim(1);
  over_stretches(exec, a.z.dim(0) * heads, 1, [&](Range tasks, int thread) {
    int64_t room = 0;
    float *dz = scratch_of(exec, thread, &room), *z = dz + a.z.cols();
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t n = task / heads, h = task % heads;
      float dot = 0;
      if (by_dots_bf16<F>(a.dz, a.z)) {
        const void *left = RowBlock::at(a.dz, n, h), *right = RowBlock::at(a.z, n, h);
        F.dots_bf16({.x = left, .w = right, .y = &dot, .rows = 1, .outputs = 1, .inner = a.z.cols()});
        ref::Out<float>(a.delta, {n}).set(h, dot);
        continue;
      }
      F.scaled_row({dz}, floats_at(a.dz, n * a.dz.stride(0) + h * a.dz.stride(1)), 1, false, a.z.cols());
      F.scaled_row({z}, floats_at(a.z, n * a.z.stride(0) + h * a.z.stride(1)), 1, false, a.z.cols());
      F.dots_f32({.x = dz, .w = z, .y = &dot, .rows = 1, .outputs = 1, .inner = a.z.cols()});
      ref::Out<float>(a.delta, {n}).set(h, dot);
    }
  });
}

// Adds factor * from to one row of a gradient.
template <const Forms& F>
void add_row(const Tensor& t, int64_t row, int64_t head, const float* from, float factor) {
  F.scaled_row(floats_at(t, row * t.stride(0) + head * t.stride(1)), {const_cast<float*>(from)}, factor, true,
               t.cols());
}

template <const Forms& F>
void find_dq(const Exec& exec, const AttentionBackwardArgs& a) {
  const Tensor& dq = a.dq.tensor;
  const int64_t width = dq.cols();
  for_row_blocks(exec, a.in, [&](const RowBlock& block, float* sums) {
    std::fill(sums, sums + block.count() * width, 0.0F);
    float* room = sums + RowBlock::kMost * width;
    const LeftRows<F> q(block, a.in.q, a.in.k, room), dz(block, a.dz, a.in.v, room + q.room(a.in.q));
    float* wide = room + q.room(a.in.q) + dz.room(a.dz);
    PairGradients pairs;
    for (int64_t key = block.begin() / kKeyBlock * kKeyBlock; key < block.end(); key += kKeyBlock) {
      q.meet({}, key, wide, pairs.probs);
      dz.meet({}, key, wide, pairs.ds);
      if (block.columns()) {
        pairs.template find_columns<F>(a, block, key);
      } else {
        pairs.template find_rows<F>(a, block, key);
      }
      block.template mix_values<F>(a.in.k, key, block.tile(pairs.ds), sums);
    }
    for (int64_t r = 0; r < block.count(); ++r) {
      add_row<F>(dq, block.row(r).row(), block.row(r).head(), sums + r * width, static_cast<float>(a.in.scale));
    }
  });
}

// A block of keys or values of one head as the columns of products with rows, and what rows give it in return.
template <const Forms& F>
class KeyColumns {
 public:
  static int64_t room(const Tensor& t) { return (2 * kKeyBlock + RowBlock::kMost) * t.cols(); }

  KeyColumns(const Tensor& t, const Tensor& rows, float* scratch)
      : keys_(t),
        left_(rows),
        width_(t.cols()),
        pairs_(in_pairs<F>(t, rows)),
        columns_(scratch),
        sums_(columns_ + kKeyBlock * width_),
        rows_(sums_ + kKeyBlock * width_) {}

  void begin(int64_t first, int64_t count, int64_t head) {
    for (int64_t j = 0; j < kKeyBlock; j += kColumns) {
      const int64_t some = std::clamp<int64_t>(count - j, 0, kColumns);
      for (int64_t i = 0; i < some; ++i) {
        const Floats from = floats_at(keys_, (first + j + i) * keys_.stride(0) + head * keys_.stride(1));
        float* to = rows_ + i * (pairs_ ? width_ / 2 : width_);
        F.scaled_row({to, pairs_}, from, 1, false, width_);
      }
      to_columns<F>(columns_ + j * width_, rows_, some, pairs_ ? width_ / 2 : width_);
    }
    std::fill(sums_, sums_ + kKeyBlock * width_, 0.0F);
  }

  // out[r][j] = row r . key j
  void meet(const RowBlock& block, float* out) {
    block.template widen_rows<F>(left_, rows_);
    const Row& first = block.row(0);
    for (int64_t j = 0; j < kKeyBlock; j += kColumns) {
      ColumnDots call{.columns = columns_ + j * width_,
                      .rows = rows_,
                      .y = out + j,
                      .row_stride = width_,
                      .y_stride = kKeyBlock,
                      .count = block.count(),
                      .inner = width_};
      if (pairs_) {
        call.rows = RowBlock::at(left_, first.row(), first.head());
        call.row_stride = left_.stride(0);
      }
      (pairs_ ? F.column_dots_bf16 : F.column_dots)(call);
    }
  }
  // Key j gets the sum of weights[r][j] times the rows it last met, in order.
  void take(int64_t rows, const float* weights) {
    F.mix_into_f32({.a = weights,
                    .b = rows_,
                    .y = sums_,
                    .a_row = 1,
                    .a_inner = kKeyBlock,
                    .b_stride = width_,
                    .y_stride = width_,
                    .rows = kKeyBlock,
                    .inner = rows,
                    .cols = width_,
                    .add = true});
  }
  const float* sum(int64_t j) const { return sums_ + j * width_; }

 private:
  const Tensor &keys_, &left_;
  int64_t width_;
  bool pairs_;
  float *columns_, *sums_, *rows_;
};

template <const Forms& F>
void find_dk_dv_block(const AttentionBackwardArgs& a, int64_t n, int64_t kv_head, int64_t key, float* scratch) {
  const AttentionInput& in = a.in;
  const Segment& s = ref::segments_of(in)[n];
  const int64_t first = s.first_key + key, count = std::min(kKeyBlock, s.keys - key);
  KeyColumns<F> k(in.k, in.q, scratch), v(in.v, a.dz, scratch + k.room(in.k));
  k.begin(first, count, kv_head);
  v.begin(first, count, kv_head);
  PairGradients pairs;
  for (int64_t h = 0; h < in.q.dim(1); ++h) {
    if (in.kv_map.as<int32_t>()[h] != kv_head) continue;
    for (int64_t row = 0; row < s.rows; row += RowBlock::kMost) {
      const RowBlock block(in, {n, row, std::min<int64_t>(RowBlock::kMost, s.rows - row), h});
      if (block.seen(key).begin == block.seen(key).end) continue;
      k.meet(block, pairs.probs);
      v.meet(block, pairs.ds);
      pairs.template find_rows<F>(a, block, key);
      if (a.dk) k.take(block.count(), pairs.ds);
      if (a.dv) v.take(block.count(), pairs.probs);
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    if (a.dk) add_row<F>(a.dk.tensor, first + j, kv_head, k.sum(j), static_cast<float>(in.scale));
    if (a.dv) add_row<F>(a.dv.tensor, first + j, kv_head, v.sum(j), 1);
  }
}

template <const Forms& F>
void find_dk_dv(const Exec& exec, const AttentionBackwardArgs& a) {
  const int64_t kv_heads = a.in.k.dim(1), segments = a.in.segments.dim(0);
  const auto blocks_of = [&](int64_t n) { return (ref::segments_of(a.in)[n].keys + kKeyBlock - 1) / kKeyBlock; };
  int64_t tasks = 0;
  for (int64_t n = 0; n < segments; ++n) tasks += blocks_of(n) * kv_heads;
  exec.pool->run(tasks, [&](int64_t task, int thread) {
    int64_t room = 0;
    float* scratch = scratch_of(exec, thread, &room);
    int64_t n = 0;
    for (; task >= blocks_of(n) * kv_heads; ++n) task -= blocks_of(n) * kv_heads;
    find_dk_dv_block<F>(a, n, task / blocks_of(n), task % blocks_of(n) * kKeyBlock, scratch);
  });
}

}  // namespace

template <const Forms& F>
void attention_backward(const Exec& exec, const AttentionBackwardArgs& a) noexcept {
  const ref::Split split(*exec.pool);
  if (!RowBlock::takes(exec, a.in, a.z) || a.in.table.defined() || a.in.k.dtype() != a.in.q.dtype() ||
      a.dz.dtype() != a.in.v.dtype() || a.z.dtype() != a.dz.dtype() ||
      !all_simple({&a.dq.tensor, &a.dk.tensor, &a.dv.tensor}) || !keys_have_one_owner(a.in)) {
    return ref::attention_backward(split, a);
  }
  find_delta<F>(exec, a);
  for (const Grad& g : {a.dq, a.dk, a.dv}) {
    if (g && !g.add) fill(exec, {.y = g.tensor, .value = 0});
  }
  if (a.dq) find_dq<F>(exec, a);
  if (a.dk || a.dv) find_dk_dv<F>(exec, a);
  if (a.dsinks || a.dbias) {
    AttentionBackwardArgs heads = a;
    heads.dq = heads.dk = heads.dv = {};
    ref::attention_backward(split, heads);
  }
}

QKV_FOR_ALL_FORMS(attention_backward, AttentionBackwardArgs)

}  // namespace qkv::kernels::cpu
