// The attention pattern recomputed from q, k and LSE for f32 and bf16, keys also i8: up to sixteen neighbouring rows at
// a time against blocks of 64 keys, as the forward pass computes them. A row's bits are the same in any choice of rows.
#include <algorithm>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;
using Stage = AttentionPatternArgs::Stage;

// Rows [row, row + count) of a segment: rows [out, out + count) of what is shown.
struct RowRun {
  int64_t segment = 0, row = 0, count = 0, out = 0;
};

// Neighbours among the rows that are wanted, of one segment and at most RowBlock::kMost.
std::vector<RowRun> runs_of(const AttentionPatternArgs& a) {
  std::vector<RowRun> runs;
  for (int64_t r = 0; r < a.out.dim(0); ++r) {
    const int64_t n = a.rows.defined() ? a.rows.as<int32_t>()[r] : r;
    for (int64_t s = 0; s < a.in.segments.dim(0); ++s) {
      const Segment& segment = ref::segments_of(a.in)[s];
      const int64_t row = n - segment.first_row;
      if (row < 0 || row >= segment.rows) continue;
      RowRun* last = runs.empty() ? nullptr : &runs.back();
      const bool next = last != nullptr && last->segment == s && last->row + last->count == row &&
                        last->out + last->count == r && last->count < RowBlock::kMost;
      if (next) {
        ++last->count;
      } else {
        runs.push_back({s, row, 1, r});
      }
    }
  }
  return runs;
}

class PatternBlock {
 public:
  PatternBlock(const AttentionPatternArgs& a, const RowRun& run, int64_t head, const IsaKernels& isa, Workspace& space)
      : a_(a),
        run_(run),
        block_(a.in, {run.segment, run.row, run.count, head, 1}, isa, RowBlock::kMost),
        q_(block_, a.in.q, a.in.k, space.take(LeftRows::scratch_floats(a.in.q))),
        wide_(space.take(kKeyBlock * a.in.q.cols())) {}

  void run() {
    for (int64_t key = block_.begin() / kKeyBlock * kKeyBlock; key < block_.end(); key += kKeyBlock) {
      q_.multiply(a_.in.k_scales, key, wide_, scores_);
      for (int64_t r = 0; r < block_.count(); ++r) show(r, key);
    }
  }

 private:
  void show(int64_t r, int64_t key) {
    const Row& row = block_.row(r);
    const Keys seen = block_.seen(r, key);
    const float scale = block_.apply_score_rules(r, key, block_.tile(scores_));
    const float* scores = scores_ + r * kKeyBlock - key;
    float* out = a_.out.as<float>() + ((run_.out + r) * a_.out.dim(1) + row.head()) * a_.out.dim(2);
    if (a_.stage == Stage::biased) {
      for (int64_t j = seen.begin; j < seen.end; ++j) out[j] = scores[j] * scale;
      return;
    }
    const float lse = ref::In<float>(a_.lse, {row.row()})[row.head()];
    for (int64_t j = seen.begin; j < seen.end; ++j) out[j] = scores[j] * scale - lse;
    block_.isa().exp_row(out + seen.begin, out + seen.begin, seen.end - seen.begin);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      if (scores[j] == Row::kHidden) out[j] = 0;  // by a mask
    }
  }

  const AttentionPatternArgs& a_;
  const RowRun& run_;
  RowBlock block_;
  LeftRows q_;
  float* wide_;  // a block of keys in f32
  float scores_[kKeyBlock * RowBlock::kMost];
};

}  // namespace

void attention_pattern(const Exec& exec, const AttentionPatternArgs& a, const IsaKernels& isa) noexcept {
  const bool mine =
      (a.stage == Stage::probs || a.stage == Stage::biased) && RowBlock::takes(exec, a.in, a.in.q) && all_f32({&a.out});
  if (!mine) return ref::attention_pattern(ref::Split(*exec.pool), a);
  fill(exec, {.y = a.out, .value = a.stage == Stage::probs ? 0 : static_cast<double>(Row::kHidden)});
  const std::vector<RowRun> runs = runs_of(a);
  const int64_t heads = a.in.q.dim(1);
  exec.pool->run(std::ssize(runs) * heads, [&](int64_t task, int thread) {
    with_tiles(isa, [&] {
      Workspace space(exec, thread);
      PatternBlock(a, runs[static_cast<size_t>(task / heads)], task % heads, isa, space).run();
    });
  });
}

}  // namespace qkv::kernels::cpu
