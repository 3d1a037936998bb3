// Attention backward for f32 and bf16; formulas in kernels/ref/attention_backward.cpp. Two passes, so that every
// gradient has one owner and one order of additions: dq by blocks of rows over their keys, dk and dv by blocks of keys
// over the heads that read them and their rows. Both recompute scores and probabilities from q, k and LSE.
//
// With pairs of bf16, if the dq of all rows that read a key head fits a thread's scratch and there are enough key heads
// for all threads, the second pass does both: the same additions in the same order, and scores are computed once.
#include <algorithm>

#include "kernels/cpu/attention_keys.h"

namespace qkv::kernels::cpu {
namespace {

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

// delta = dz . z, in the same order of additions as the score products, so that the score gradient of a row that sees
// one key only is exactly zero. With pairs: the diagonal of sixteen rows times sixteen; only this has the order of
// tiles.
void compute_delta_pairs(const AttentionBackwardArgs& a, Range tasks, Workspace workspace, const IsaKernels& isa) {
  const int64_t heads = a.z.dim(1), width = a.z.cols();
  float *dz = workspace.take(RowBlock::kMost * width), *columns = workspace.take(RowBlock::kMost * width);
  auto* z = reinterpret_cast<uint16_t*>(workspace.take(RowBlock::kMost * width));
  float dots[RowBlock::kMost * kColumns];
  for (int64_t task = tasks.begin; task < tasks.end; task += RowBlock::kMost) {
    const int64_t rows = std::min(tasks.end - task, RowBlock::kMost);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t n = (task + r) / heads, h = (task + r) % heads;
      const auto copy = [&](const Tensor& from, void* to) {
        const auto* row = static_cast<const uint16_t*>(RowBlock::at(from, n, h));
        std::copy(row, row + width, static_cast<uint16_t*>(to) + r * width);
      };
      copy(a.dz, dz);
      copy(a.z, z);
    }
    to_columns(columns, dz, rows, width / 2, isa);
    isa.matmul_columns_bf16({.columns = columns,
                             .rows = z,
                             .y = dots,
                             .row_stride = width,
                             .y_stride = kColumns,
                             .count = rows,
                             .inner = width});
    for (int64_t r = 0; r < rows; ++r) {
      ref::Out<float>(a.delta, {(task + r) / heads}).set((task + r) % heads, dots[r * kColumns + r]);
    }
  }
}

void compute_delta(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) {
  const int64_t heads = a.z.dim(1);
  over_thread_ranges(exec, a.z.dim(0) * heads, 1, [&](Range tasks, int thread) {
    if (multiplies_pairs_nt(a.dz, a.z, isa)) {
      return with_tiles(isa, [&] { compute_delta_pairs(a, tasks, Workspace(exec, thread), isa); });
    }
    float *dz = scratch_of(exec, thread), *z = dz + a.z.cols();
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t n = task / heads, h = task % heads;
      float dot = 0;
      isa.scaled_row({dz}, float_row_at(a.dz, n * a.dz.stride(0) + h * a.dz.stride(1)), 1, false, a.z.cols());
      isa.scaled_row({z}, float_row_at(a.z, n * a.z.stride(0) + h * a.z.stride(1)), 1, false, a.z.cols());
      isa.matmul_nt_f32({.x = dz, .w = z, .y = &dot, .rows = 1, .outputs = 1, .inner = a.z.cols()});
      ref::Out<float>(a.delta, {n}).set(h, dot);
    }
  });
}

// Adds factor * from to one row of a gradient.
void add_row(const Tensor& t, int64_t row, int64_t head, const float* from, float factor, const IsaKernels& isa) {
  isa.scaled_row(float_row_at(t, row * t.stride(0) + head * t.stride(1)), {const_cast<float*>(from)}, factor, true,
                 t.cols());
}

class DqRows {
 public:
  DqRows(const AttentionBackwardArgs& a, Workspace& workspace, const IsaKernels& isa)
      : a_(a),
        sums_(workspace.take(RowBlock::kMost * width())),
        q_(workspace.take(LeftRows::scratch_floats(a.in.q))),
        dz_(workspace.take(LeftRows::scratch_floats(a.dz))),
        wide_(workspace.take(kKeyBlock * std::max(a.in.k.cols(), a.in.v.cols()))) {
    if (multiplies_pairs_nn(a.in.q, a.in.k, isa)) paired_keys_.emplace(a.in, a.in.k, workspace);
  }

  void operator()(const RowBlock& block) {
    std::fill(sums_, sums_ + block.count() * width(), 0.0F);
    const LeftRows q(block, a_.in.q, a_.in.k, q_), dz(block, a_.dz, a_.in.v, dz_);
    ScoreGradients pairs;
    for (int64_t key = block.begin() / kKeyBlock * kKeyBlock; key < block.end(); key += kKeyBlock) {
      q.multiply({}, key, wide_, pairs.probs);
      dz.multiply({}, key, wide_, pairs.ds);
      if (block.columns()) {
        pairs.compute_columns(a_, block, key);
      } else {
        pairs.compute_rows(a_, block, key);
      }
      if (paired_keys_) {
        paired_keys_->multiply(block, key, block.tile(pairs.ds), sums_);
      } else {
        block.matmul_values(a_.in.k, key, block.tile(pairs.ds), sums_);
      }
    }
    for (int64_t r = 0; r < block.count(); ++r) {
      add_row(a_.dq.tensor, block.row(r).row(), block.row(r).head(), sums_ + r * width(),
              static_cast<float>(a_.in.scale), block.isa());
    }
  }

 private:
  int64_t width() const { return a_.dq.tensor.cols(); }

  const AttentionBackwardArgs& a_;
  float *sums_, *q_, *dz_, *wide_;
  std::optional<PairedKeys> paired_keys_;
};

// One block of keys of a segment and head. `dq`, or null: sums for the rows of all heads that read the key head, head
// by head.
struct KeyTask {
  int64_t segment = 0, kv_head = 0, key = 0;
  float* dq = nullptr;
};

void compute_dk_dv_block(const AttentionBackwardArgs& a, const KeyTask& task, Workspace workspace,
                         const IsaKernels& isa) {
  const AttentionInput& in = a.in;
  const Segment& s = ref::segments_of(in)[task.segment];
  const int64_t key = task.key, first = s.first_key + key, count = std::min(kKeyBlock, s.keys - key);
  KeyColumns k(in.k, in.q, workspace, isa), v(in.v, a.dz, workspace, isa);
  k.begin(first, count, task.kv_head);
  v.begin(first, count, task.kv_head);
  if (task.dq != nullptr) k.begin_dq(first, count, task.kv_head);
  RowGroup group;
  ScoreGradients pairs;
  float* dq = task.dq;
  for (int64_t h = 0; h < in.q.dim(1); ++h) {
    if (in.kv_map.as<int32_t>()[h] != task.kv_head) continue;
    for (int64_t row = 0; row < s.rows; row += RowGroup::kMost) {
      if (!group.find(in, {.segment = task.segment, .row = row, .head = h}, s.rows, key, isa)) continue;
      group.each([&](const RowBlock& block, int64_t at) {
        k.multiply(block, at, pairs.probs + at * kKeyBlock);
        v.multiply(block, at, pairs.ds + at * kKeyBlock);
        pairs.compute_rows(a, block, key, at);
        if (dq != nullptr) k.add_to_dq(block, key, pairs.ds + at * kKeyBlock, dq + (row + at) * in.q.cols());
      });
      if (a.dk) k.accumulate(group, key, pairs.ds);
      if (a.dv) v.accumulate(group, key, pairs.probs);
    }
    if (dq != nullptr) dq += s.rows * in.q.cols();
  }
  for (int64_t j = 0; j < count; ++j) {
    if (a.dk) add_row(a.dk.tensor, first + j, task.kv_head, k.sum(j), static_cast<float>(in.scale), isa);
    if (a.dv) add_row(a.dv.tensor, first + j, task.kv_head, v.sum(j), 1, isa);
  }
}

void compute_dk_dv(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) {
  const int64_t kv_heads = a.in.k.dim(1), segments = a.in.segments.dim(0);
  const auto blocks_of = [&](int64_t n) { return (ref::segments_of(a.in)[n].keys + kKeyBlock - 1) / kKeyBlock; };
  int64_t tasks = 0;
  for (int64_t n = 0; n < segments; ++n) tasks += blocks_of(n) * kv_heads;
  exec.pool->run(tasks, [&](int64_t task, int thread) {
    int64_t n = 0;
    for (; task >= blocks_of(n) * kv_heads; ++n) task -= blocks_of(n) * kv_heads;
    const KeyTask block{.segment = n, .kv_head = task / blocks_of(n), .key = task % blocks_of(n) * kKeyBlock};
    with_tiles(isa, [&] { compute_dk_dv_block(a, block, Workspace(exec, thread), isa); });
  });
}

// Rows of dq that read one key head of a segment, at most.
int64_t most_rows_of_a_key_head(const AttentionInput& in) {
  int64_t heads = 0, rows = 0;
  const auto* kv_map = in.kv_map.as<int32_t>();
  for (int64_t g = 0; g < in.k.dim(1); ++g) {
    heads = std::max<int64_t>(heads, std::count(kv_map, kv_map + in.q.dim(1), static_cast<int32_t>(g)));
  }
  for (int64_t n = 0; n < in.segments.dim(0); ++n) rows = std::max<int64_t>(rows, ref::segments_of(in)[n].rows);
  return heads * rows;
}

bool computes_all_at_once(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) {
  constexpr int64_t kBlocks = 3 * RowBlock::kMost + 3 * kKeyBlock;  // as RowBlock::takes
  const int64_t bytes =
      (most_rows_of_a_key_head(a.in) * a.in.q.cols() + kBlocks * (a.in.v.cols() + a.in.q.cols() + 2 * kColumns)) *
      size_of(DType::f32);
  const int64_t tasks = a.in.segments.dim(0) * a.in.k.dim(1), threads = exec.pool->threads();
  return multiplies_pairs_nn(a.in.q, a.in.k, isa) && bytes <= exec.scratch.dim(1) &&
         (tasks % threads == 0 || tasks >= 4 * threads);
}

void compute_all(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) {
  const AttentionInput& in = a.in;
  const int64_t kv_heads = in.k.dim(1), width = in.q.cols();
  exec.pool->run(in.segments.dim(0) * kv_heads, [&](int64_t task, int thread) {
    const Segment& s = ref::segments_of(in)[task / kv_heads];
    const auto* kv_map = in.kv_map.as<int32_t>();
    KeyTask block{.segment = task / kv_heads, .kv_head = task % kv_heads};
    const int64_t rows = s.rows * std::count(kv_map, kv_map + in.q.dim(1), static_cast<int32_t>(block.kv_head));
    Workspace workspace(exec, thread);
    block.dq = workspace.take(rows * width);
    std::fill(block.dq, block.dq + rows * width, 0.0F);
    with_tiles(isa, [&] {
      for (; block.key < s.keys; block.key += kKeyBlock) compute_dk_dv_block(a, block, workspace, isa);
    });
    const float* sums = block.dq;
    for (int64_t h = 0; h < in.q.dim(1); ++h) {
      if (kv_map[h] != block.kv_head) continue;
      for (int64_t r = 0; r < s.rows; ++r, sums += width) {
        add_row(a.dq.tensor, s.first_row + r, h, sums, static_cast<float>(in.scale), isa);
      }
    }
  });
}

}  // namespace

void attention_backward(const Exec& exec, const AttentionBackwardArgs& a, const IsaKernels& isa) noexcept {
  const ref::Split split(*exec.pool);
  if (!RowBlock::takes(exec, a.in, a.z) || a.in.table.defined() || a.in.k.dtype() != a.in.q.dtype() ||
      a.dz.dtype() != a.in.v.dtype() || a.z.dtype() != a.dz.dtype() ||
      !all_float({&a.dq.tensor, &a.dk.tensor, &a.dv.tensor}) || !keys_have_one_owner(a.in)) {
    return ref::attention_backward(split, a);
  }
  compute_delta(exec, a, isa);
  for (const Grad& g : {a.dq, a.dk, a.dv}) {
    if (g && !g.add) fill(exec, {.y = g.tensor, .value = 0});
  }
  if (a.dq && (a.dk || a.dv) && computes_all_at_once(exec, a, isa)) {
    compute_all(exec, a, isa);
  } else {
    if (a.dq) for_row_blocks(exec, a.in, isa, [&](Workspace& workspace) { return DqRows(a, workspace, isa); });
    if (a.dk || a.dv) compute_dk_dv(exec, a, isa);
  }
  if (a.dsinks || a.dbias) {
    AttentionBackwardArgs heads = a;
    heads.dq = heads.dk = heads.dv = {};
    ref::attention_backward(split, heads);
  }
}

}  // namespace qkv::kernels::cpu
