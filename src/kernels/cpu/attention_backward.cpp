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

// Probabilities and score gradients of a block of rows against a block of keys; zeros where a row sees nothing.
struct PairGradients {
  float carried[RowBlock::kMost][kKeyBlock];  // p keep
  float ds[RowBlock::kMost][kKeyBlock];       // without the scale

  template <const Forms& F>
  void find(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key) {
    float scores[RowBlock::kMost][kKeyBlock], raw[kKeyBlock];
    block.template scores<F>(a.in.q, a.in.k, key, &scores[0][0]);
    block.template scores<F>(a.dz, a.in.v, key, &ds[0][0]);  // d loss / d (p keep)
    for (int64_t r = 0; r < block.count(); ++r) {
      const Keys seen = block.seen(r, key);
      if (a.in.softcap > 0) std::copy(scores[r], scores[r] + kKeyBlock, raw);
      if (a.in.dropout.p > 0) block.drop(r, key, ds[r]);
      const int64_t n = block.row(r).row();
      const float lse = ref::In<float>(a.lse, {n})[block.head()];
      GradientStep step{.scores = scores[r], .dp = ds[r], .probs = carried[r], .ds = ds[r]};
      step.scale = block.finish_scores(r, key, scores[r]);
      step.lse = lse == Row::kHidden ? 0 : lse;
      step.delta = ref::In<float>(a.delta, {n})[block.head()];
      F.gradient_step(step);
      for (int64_t j = key; j < key + kKeyBlock; ++j) {
        if (j < seen.begin || j >= seen.end) carried[r][j - key] = ds[r][j - key] = 0;
      }
      if (a.in.dropout.p > 0) block.drop(r, key, carried[r]);
      if (a.in.softcap > 0) through_cap(a.in, seen, key, raw, ds[r]);
    }
  }

 private:
  static void through_cap(const AttentionInput& in, Keys seen, int64_t key, const float* raw, float* ds) {
    const float cap = static_cast<float>(in.softcap), scale = static_cast<float>(in.scale);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      const float t = std::tanh(raw[j - key] * scale / cap);
      ds[j - key] *= 1 - t * t;
    }
  }
};

// In the order of the scores' own products: where a row sees one key only, its score gradient is then exactly zero.
template <const Forms& F>
void find_delta(const Exec& exec, const AttentionBackwardArgs& a) {
  const int64_t heads = a.z.dim(1);
  ref::Split (*exec.pool)(a.z.dim(0) * heads, [&](ref::Range tasks) {
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t n = task / heads, h = task % heads;
      float dot = 0;
      const DotCall call{.x = RowBlock::at(a.dz, n, h),
                         .w = RowBlock::at(a.z, n, h),
                         .y = &dot,
                         .rows = 1,
                         .outputs = 1,
                         .inner = a.z.cols()};
      (a.z.dtype() == DType::f32 ? F.dots_f32 : F.dots_bf16)(call);
      ref::Out<float>(a.delta, {n}).set(h, dot);
    }
  });
}

// Adds factor * from to one row of a gradient.
void add_row(const Tensor& t, int64_t row, int64_t head, const float* from, float factor) {
  const ref::Out<float> out(t, {row, head});
  for (int64_t c = 0; c < t.cols(); ++c) out.put(c, factor * from[c], true);
}

template <const Forms& F>
void find_dq(const Exec& exec, const AttentionBackwardArgs& a) {
  const Tensor& dq = a.dq.tensor;
  const int64_t width = dq.cols();
  for_row_blocks(exec, a.in, [&](const RowBlock& block, float* sums) {
    std::fill(sums, sums + block.count() * width, 0.0F);
    PairGradients pairs;
    for (int64_t key = block.begin() / kKeyBlock * kKeyBlock; key < block.end(); key += kKeyBlock) {
      pairs.template find<F>(a, block, key);
      block.template mix_values<F>(a.in.k, key, &pairs.ds[0][0], sums, width);
    }
    for (int64_t r = 0; r < block.count(); ++r) {
      add_row(dq, block.row(r).row(), block.head(), sums + r * width, static_cast<float>(a.in.scale));
    }
  });
}

// to[j] += sum over the block's rows of weights[r][j] * rows[r], in order.
template <const Forms& F>
void mix_rows(const RowBlock& block, const float* weights, const Tensor& rows, float* to) {
  const MixCall call{.a = weights,
                     .b = RowBlock::at(rows, block.first_row(), block.head()),
                     .y = to,
                     .a_row = 1,
                     .a_inner = kKeyBlock,
                     .b_stride = rows.stride(0),
                     .y_stride = rows.cols(),
                     .rows = kKeyBlock,
                     .inner = block.count(),
                     .cols = rows.cols(),
                     .add = true};
  (rows.dtype() == DType::f32 ? F.mix_f32 : F.mix_bf16)(call);
}

template <const Forms& F>
void find_dk_dv_block(const AttentionBackwardArgs& a, int64_t n, int64_t kv_head, int64_t key, float* scratch) {
  const AttentionInput& in = a.in;
  const Segment& s = ref::segments_of(in)[n];
  float *dk = scratch, *dv = scratch + kKeyBlock * in.k.cols();
  std::fill(dk, dv + kKeyBlock * in.v.cols(), 0.0F);
  PairGradients pairs;
  for (int64_t h = 0; h < in.q.dim(1); ++h) {
    if (in.kv_map.as<int32_t>()[h] != kv_head) continue;
    for (int64_t row = 0; row < s.rows; row += RowBlock::kMost) {
      const RowBlock block(in, n, row, std::min<int64_t>(RowBlock::kMost, s.rows - row), h);
      if (block.seen(key).begin == block.seen(key).end) continue;
      pairs.template find<F>(a, block, key);
      if (a.dk) mix_rows<F>(block, &pairs.ds[0][0], in.q, dk);
      if (a.dv) mix_rows<F>(block, &pairs.carried[0][0], a.dz, dv);
    }
  }
  for (int64_t j = 0; j < std::min(kKeyBlock, s.keys - key); ++j) {
    const int64_t m = s.first_key + key + j;
    if (a.dk) add_row(a.dk.tensor, m, kv_head, dk + j * in.k.cols(), static_cast<float>(in.scale));
    if (a.dv) add_row(a.dv.tensor, m, kv_head, dv + j * in.v.cols(), 1);
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
      !all_simple({&a.dq.tensor, &a.dk.tensor, &a.dv.tensor}) || !keys_have_one_owner(a.in) ||
      kKeyBlock * (a.in.k.cols() + a.in.v.cols()) * size_of(DType::f32) > exec.scratch.dim(1)) {
    return ref::attention_backward(split, a);
  }
  find_delta<F>(exec, a);
  for (const Grad& g : {a.dq, a.dk, a.dv}) {
    if (g && !g.add) ref::fill(split, {.y = g.tensor, .value = 0});
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
