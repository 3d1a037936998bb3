// Attention forward, f32 and bf16, and keys and values stored otherwise: sixteen query rows at a time against blocks of
// 64 keys, online softmax, nothing of size T x S. Scores are `dots`, the mixed values `mix`; a row's bits are the same
// alone, in a block, cached or not, because both work on every row for itself and blocks start at absolute positions.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_pairs.h"
#include "kernels/ref/attention_stats.h"

namespace qkv::kernels::cpu {
namespace {

using Row = ref::QueryRow<float>;

bool any(const AttentionStats& s) {
  return s.entropy.defined() || s.distance.defined() || s.first.defined() || s.highest.defined() ||
         s.argmax.defined() || s.at_offset.defined() || s.in_class.defined();
}

// What a thread keeps from block to block.
template <const Forms& F>
struct ForwardRoom {
  ForwardRoom(const AttentionArgs& a, Room& room)
      : z(room.take(RowBlock::kMost * a.z.dim(2))),
        q(room.take(LeftRows<F>::room(a.in.q))),
        k(room.take(kKeyBlock * a.in.q.cols())),
        v(room.take(kKeyBlock * a.z.dim(2))) {
    if (mixes_pairs<F>(a.in.q, a.in.v)) mixer.emplace(a.in, a.in.v, room);
  }

  float* z;  // [rows, E]
  float* q;
  float *k, *v;  // [kKeyBlock, D], [kKeyBlock, E]: for those that are widened first
  std::optional<KeyMixer<F>> mixer;
};

template <const Forms& F>
class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& a, const RowBlock& block, ForwardRoom<F>& room)
      : a_(a), block_(block), room_(room), z_(room.z), q_(block, a.in.q, a.in.k, room.q) {
    std::fill(z_, z_ + block.count() * width(), 0.0F);
    for (int64_t r = 0; r < RowBlock::kMost; ++r) {
      const bool sink = r < block.count() && a.in.sinks.defined();
      highest_[r] = sink ? ref::In<float>(a.in.sinks)[block.row(r).head()] : Row::kHidden;
      total_[r] = sink ? 1 : 0;
    }
  }

  void run() {
    if (any(a_.stats)) begin_counting();
    for (int64_t key = block_.begin() / kKeyBlock * kKeyBlock; key < block_.end(); key += kKeyBlock) walk(key);
    finish();
  }

 private:
  int64_t width() const { return a_.z.dim(2); }
  Tile scores() { return block_.tile(scores_); }
  Tile probs() { return block_.tile(probs_); }

  void begin_counting() {
    for (int64_t r = 0; r < block_.count(); ++r) stats_[r].emplace(a_.stats, block_.row(r));
    std::fill(leader_, leader_ + RowBlock::kMost, -1);
    if (!a_.stats.at_offset.defined()) return;
    const auto* offsets = a_.stats.offsets.as<int32_t>();
    for (int64_t r = 0; r < block_.count(); ++r) {
      for (int64_t o = 0; o < a_.stats.offsets.count(); ++o) {
        const int64_t key = block_.row(r).position() - offsets[o];
        single_begin_ = std::min(single_begin_, key);
        single_end_ = std::max(single_end_, key + 1);
      }
    }
  }
  // Whether a block may have keys whose own probability is wanted: the first, and those at offsets.
  bool has_singles(int64_t key) const { return key == 0 || (key < single_end_ && key + kKeyBlock > single_begin_); }

  // Keys of a block that are not of class 0: few are, and all rows see the same keys.
  void find_marked(int64_t key) {
    marked_ = 0;
    const Keys keys = block_.seen(key);
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const int32_t key_class = stats_[0]->class_of(j);
      if (key_class != 0) marks_[marked_++] = {j, key_class};
    }
  }

  void walk(int64_t key) {
    if (stats_[0] && stats_[0]->by_class()) find_marked(key);
    q_.meet(a_.in.k_scales, key, room_.k, scores_);
    if (block_.columns()) {
      step_columns(key);
    } else {
      for (int64_t r = 0; r < block_.count(); ++r) step_row(r, key);
    }
    if (stats_[0]) count_singles(key);
    for (int64_t r = 0; r < block_.count(); ++r) {
      if (rescale_[r] != 1) F.scale_row(z_ + r * width(), width(), rescale_[r]);
      if (a_.in.dropout.p > 0) block_.drop(r, key, probs());
    }
    if (room_.mixer) {
      room_.mixer->mix(block_, key, probs(), z_);
    } else if (a_.in.v.dtype() == DType::i8) {
      block_.template widen_keys<F>(a_.in.v, a_.in.v_scales, key, room_.v);
      block_.template mix_values<F>(room_.v, width(), key, probs(), z_);
    } else {
      block_.template mix_values<F>(a_.in.v, key, probs(), z_);
    }
  }

  void step_row(int64_t r, int64_t key) {
    SoftmaxStep step{.scores = scores_ + r * kKeyBlock,
                     .probs = probs_ + r * kKeyBlock,
                     .scale = block_.finish_scores(r, key, scores()),
                     .highest = highest_[r],
                     .total = total_[r]};
    block_.cover(r, key, step.scores, Row::kHidden);
    F.softmax_step(step);
    highest_[r] = step.highest;
    total_[r] = step.total;
    rescale_[r] = step.rescale;
    if (!stats_[r]) return;
    const float from = static_cast<float>(block_.row(r).position() - key);
    const BlockStats sums = F.block_stats(step.scores, step.probs, from);
    const auto* first = std::find(step.scores, step.scores + kKeyBlock, sums.highest);
    block_mass_[r] = step.mass;
    count_row(r, key, sums, step.mass, first - step.scores);
  }

  void step_columns(int64_t key) {
    const Keys keys = block_.seen(key);
    SoftmaxColumns step{.scores = scores_, .probs = probs_, .from = keys.begin - key, .to = keys.end - key};
    step.alike = block_.column_bounds(key, step.begin, step.end);
    for (int64_t r = 0; r < block_.count(); ++r) step.scale = block_.finish_scores(r, key, scores());
    std::copy(highest_, highest_ + kColumns, step.highest);
    std::copy(total_, total_ + kColumns, step.total);
    F.softmax_columns(step);
    std::copy(step.highest, step.highest + kColumns, highest_);
    std::copy(step.total, step.total + kColumns, total_);
    std::copy(step.rescale, step.rescale + kColumns, rescale_);
    if (!stats_[0]) return;
    StatsColumns sums{.scores = scores_, .probs = probs_};
    for (int64_t r = 0; r < block_.count(); ++r) {
      sums.from[r] = static_cast<float>(block_.row(r).position() - key);
    }
    F.stats_columns(sums);
    std::copy(step.mass, step.mass + kColumns, block_mass_);
    for (int64_t r = 0; r < block_.count(); ++r) {
      count_row(r, key, {sums.mass_x[r], sums.distance[r], sums.highest[r]}, step.mass[r],
                static_cast<int64_t>(sums.where[r]));
    }
  }

  // What a block gives row r; `where`: the first of its keys with the largest score.
  void count_row(int64_t r, int64_t key, const BlockStats& sums, float mass, int64_t where) {
    const bool hidden = sums.highest == Row::kHidden;
    mass_[r] = mass_[r] * rescale_[r] + (hidden ? 0 : mass);
    mass_x_[r] = mass_x_[r] * rescale_[r] + (hidden ? 0 : sums.mass_x);
    distance_[r] = distance_[r] * rescale_[r] + (hidden ? 0 : sums.distance);
    if (!hidden && (leader_[r] < 0 || sums.highest > lead_[r])) {
      lead_[r] = sums.highest;
      leader_[r] = key + where;
    }
  }
  // The same for what only some blocks, or some who look, have.
  void count_singles(int64_t key) {
    const bool by_class = stats_[0]->by_class();
    if (!by_class && !has_singles(key)) return;
    for (int64_t r = 0; r < block_.count(); ++r) {
      ref::RowStats<float>& stats = *stats_[r];
      const Keys seen = block_.seen(r, key);
      stats.keep_scores(seen.begin, seen.end, [&](int64_t j) { return scores()(r, j - key); });
      if (by_class) count_classes(r, key, seen);
    }
  }
  void count_classes(int64_t r, int64_t key, Keys seen) {
    ref::RowStats<float>& stats = *stats_[r];
    stats.rescale(rescale_[r]);
    float rest = block_mass_[r];
    for (int64_t m = 0; m < marked_; ++m) {
      const auto [j, key_class] = marks_[m];
      if (j < seen.begin || j >= seen.end) continue;
      const float p = probs()(r, j - key);
      stats.add_to_class(key_class, p);
      rest -= p;
    }
    stats.add_to_class(0, std::max(rest, 0.0F));
  }
  void write_stats(int64_t r, float total, float lse) {
    stats_[r]->add_sums(mass_[r], mass_x_[r], distance_[r]);
    if (leader_[r] >= 0) stats_[r]->lead(leader_[r], lead_[r]);
    stats_[r]->write(block_.row(r).head(), total, lse);
  }

  void finish() {
    for (int64_t r = 0; r < block_.count(); ++r) {
      const Row& row = block_.row(r);
      const float total = total_[r], lse = total != 0 ? highest_[r] + std::log(total) : Row::kHidden;
      float* z = z_ + r * width();
      if (total != 0) {  // NaN is passed on
        F.divide_row(z, width(), total);
      } else {
        std::fill(z, z + width(), 0.0F);
      }
      put_row<F>(a_.z, row.row(), row.head(), z);
      ref::Out<float>(a_.lse, {row.row()}).set(row.head(), lse);
      if (stats_[r]) write_stats(r, total, lse);
    }
  }

  const AttentionArgs& a_;
  const RowBlock& block_;
  ForwardRoom<F>& room_;
  float* z_;
  LeftRows<F> q_;
  float scores_[kKeyBlock * RowBlock::kMost], probs_[kKeyBlock * RowBlock::kMost];
  float highest_[RowBlock::kMost], total_[RowBlock::kMost], rescale_[RowBlock::kMost];  // of the running softmax
  // Sums and the leading key of every row, relative to the running maximum; the rest is kept by RowStats.
  float mass_[RowBlock::kMost] = {}, mass_x_[RowBlock::kMost] = {}, distance_[RowBlock::kMost] = {};
  float lead_[RowBlock::kMost], block_mass_[RowBlock::kMost];
  int64_t leader_[RowBlock::kMost];
  std::optional<ref::RowStats<float>> stats_[RowBlock::kMost];
  struct Mark {
    int64_t key;
    int32_t key_class;
  };
  Mark marks_[kKeyBlock];
  int64_t marked_ = 0;
  int64_t single_begin_ = INT64_MAX, single_end_ = INT64_MIN;
};

// Whether every row belongs to a segment, and is therefore written.
bool all_in_segments(const AttentionInput& in) {
  int64_t rows = 0;
  for (int64_t n = 0; n < in.segments.dim(0); ++n) rows += ref::segments_of(in)[n].rows;
  return rows == in.q.dim(0);
}

}  // namespace

template <const Forms& F>
void attention(const Exec& exec, const AttentionArgs& a) noexcept {
  const ref::Split split(*exec.pool);
  if (!RowBlock::takes(exec, a.in, a.z)) return ref::attention(split, a);
  if (!all_in_segments(a.in)) ref::blank_rows<float>(a, split);
  for_row_blocks<F>(exec, a.in, [&](Room& memory) {
    return [&a, room = ForwardRoom<F>(a, memory)](const RowBlock& block) mutable {
      ForwardBlock<F>(a, block, room).run();
    };
  });
}

QKV_FOR_ALL_FORMS(attention, AttentionArgs)

}  // namespace qkv::kernels::cpu
