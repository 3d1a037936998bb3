// Attention backward, f32 and bf16; the formulas stand in kernels/ref/attention_backward.cpp. Two walks, so that every
// gradient has one owner and one order of additions: dq by blocks of rows over their keys, dk and dv by blocks of keys
// over the heads that read them and their rows. Both recompute scores and probabilities from q, k and LSE.
//
// In pairs of bf16, where a thread has room for the dq of all rows that read a key head, and there are key heads enough
// for all threads, the second walk does both: the same additions in the same order, and scores are computed once.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention_pairs.h"

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

constexpr int64_t kTile = RowBlock::kMost * kKeyBlock, kBlocksOfGroup = 2;

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
  float probs[kBlocksOfGroup * kTile];  // q . k on the way in, p keep on the way out (rows only)
  float ds[kBlocksOfGroup * kTile];     // dz . v on the way in, d loss / d score without the scale on the way out

  // Rows one after the other, the first of them is row `at`; zeros where a row sees nothing.
  template <const Forms& F>
  void find_rows(const AttentionBackwardArgs& a, const RowBlock& block, int64_t key, int64_t at = 0) {
    const Tile p = Tile::rows(probs + at * kKeyBlock), d = Tile::rows(ds + at * kKeyBlock);
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
// Pairs: sixteen rows against sixteen, of which the diagonal is taken; no faster way has the order of tiles.
template <const Forms& F>
void find_delta_of_pairs(const AttentionBackwardArgs& a, Range tasks, Room room) {
  const int64_t heads = a.z.dim(1), width = a.z.cols();
  float *dz = room.take(RowBlock::kMost * width), *columns = room.take(RowBlock::kMost * width);
  auto* z = reinterpret_cast<uint16_t*>(room.take(RowBlock::kMost * width));
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
    to_columns<F>(columns, dz, rows, width / 2);
    F.column_dots_bf16({.columns = columns,
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

template <const Forms& F>
void find_delta(const Exec& exec, const AttentionBackwardArgs& a) {
  const int64_t heads = a.z.dim(1);
  over_stretches(exec, a.z.dim(0) * heads, 1, [&](Range tasks, int thread) {
    if (in_pairs<F>(a.dz, a.z)) {
      return with_tiles<F>([&] { find_delta_of_pairs<F>(a, tasks, Room(exec, thread)); });
    }
    int64_t room = 0;
    float *dz = scratch_of(exec, thread, &room), *z = dz + a.z.cols();
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t n = task / heads, h = task % heads;
      float dot = 0;
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
class DqRows {
 public:
  DqRows(const AttentionBackwardArgs& a, Room& room)
      : a_(a),
        sums_(room.take(RowBlock::kMost * width())),
        q_(room.take(LeftRows<F>::room(a.in.q))),
        dz_(room.take(LeftRows<F>::room(a.dz))),
        wide_(room.take(kKeyBlock * std::max(a.in.k.cols(), a.in.v.cols()))) {
    if (mixes_pairs<F>(a.in.q, a.in.k)) mixer_.emplace(a.in, a.in.k, room);
  }

  void operator()(const RowBlock& block) {
    std::fill(sums_, sums_ + block.count() * width(), 0.0F);
    const LeftRows<F> q(block, a_.in.q, a_.in.k, q_), dz(block, a_.dz, a_.in.v, dz_);
    PairGradients pairs;
    for (int64_t key = block.begin() / kKeyBlock * kKeyBlock; key < block.end(); key += kKeyBlock) {
      q.meet({}, key, wide_, pairs.probs);
      dz.meet({}, key, wide_, pairs.ds);
      if (block.columns()) {
        pairs.template find_columns<F>(a_, block, key);
      } else {
        pairs.template find_rows<F>(a_, block, key);
      }
      if (mixer_) {
        mixer_->mix(block, key, block.tile(pairs.ds), sums_);
      } else {
        block.template mix_values<F>(a_.in.k, key, block.tile(pairs.ds), sums_);
      }
    }
    for (int64_t r = 0; r < block.count(); ++r) {
      add_row<F>(a_.dq.tensor, block.row(r).row(), block.row(r).head(), sums_ + r * width(),
                 static_cast<float>(a_.in.scale));
    }
  }

 private:
  int64_t width() const { return a_.dq.tensor.cols(); }

  const AttentionBackwardArgs& a_;
  float *sums_, *q_, *dz_, *wide_;
  std::optional<KeyMixer<F>> mixer_;
};

// Two blocks of rows of one head on their way to a block of keys: tiles sum over 32 of them.
class RowGroup {
 public:
  static constexpr int64_t kBlocks = kBlocksOfGroup, kMost = kBlocks * RowBlock::kMost;

  // The rows of one head of a segment from `row` on; false where none of them sees a key of the block.
  bool find(const AttentionInput& in, const BlockRows& first, int64_t rows, int64_t key) {
    bool any = false;
    for (int64_t b = 0; b < kBlocks; ++b) {
      blocks_[b].reset();
      BlockRows at = first;
      at.row += b * RowBlock::kMost;
      at.rows = std::min(RowBlock::kMost, rows - at.row);
      if (at.rows <= 0) continue;
      const RowBlock& block = blocks_[b].emplace(in, at);
      if (block.seen(key).begin == block.seen(key).end) blocks_[b].reset();
      any = any || blocks_[b];
    }
    return any;
  }
  // f(RowBlock, which of the rows of the group is its first)
  template <class Fn>
  void each(Fn&& f) const {
    for (int64_t b = 0; b < kBlocks; ++b) {
      if (blocks_[b]) f(*blocks_[b], b * RowBlock::kMost);
    }
  }
  bool sees(int64_t r, int64_t key) const { return blocks_[r / RowBlock::kMost]->row(r % RowBlock::kMost).sees(key); }

 private:
  std::optional<RowBlock> blocks_[kBlocks];
};

// A block of keys or values of one head as the columns of products with rows, and what rows give it in return.
template <const Forms& F>
class KeyColumns {
 public:
  KeyColumns(const Tensor& t, const Tensor& rows, Room& room)
      : keys_(t),
        left_(rows),
        width_(t.cols()),
        pairs_(in_pairs<F>(t, rows)),
        mixes_pairs_(mixes_pairs<F>(t, rows)),
        columns_(room.take(kKeyBlock * width_)),
        sums_(room.take(kKeyBlock * width_)),
        rows_(room.take(RowGroup::kMost * width_)),
        spare_(room.take(PairedRows::room(width_))),
        paired_(room.take(PairedRows::room(width_) / 2)),
        given_(room.take(PairedRows::room(width_))) {}

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
  // The keys as they are mixed by rows in return: to[r] += sum of weights[r][j] key j, for the rows of a block.
  void begin_giving(int64_t first, int64_t count, int64_t head) {
    for (int64_t j = 0; j < kKeyBlock; ++j) {
      given_.rows[j] = j < count ? static_cast<const uint16_t*>(RowBlock::at(keys_, first + j, head)) : nullptr;
    }
    given_.make<F>(kKeyBlock, width_);
  }
  void give(const RowBlock& block, int64_t key, const float* weights, float* to) {
    alignas(64) uint32_t pairs[kKeyBlock / 2 * RowBlock::kMost];
    F.narrow(reinterpret_cast<uint16_t*>(pairs), weights, block.count() * kKeyBlock);
    const Keys seen = block.seen(key);
    mix_pairs<F>({.weights = pairs,
                  .lane_stride = kKeyBlock / 2,
                  .pair_stride = 1,
                  .lanes = block.count(),
                  .begin = seen.begin - key,
                  .end = seen.end - key,
                  .to = to,
                  .cols = width_},
                 given_, spare_, [&](int64_t r, int64_t j) { return block.row(r).sees(key + j); });
  }

  // out[r][j] = row r . key j, for the rows of a group from `at` on
  void meet(const RowBlock& block, int64_t at, float* out) {
    float* wide = rows_ + at * width_;
    if (!pairs_) block.template widen_rows<F>(left_, wide);
    const Row& first = block.row(0);
    for (int64_t j = 0; j < kKeyBlock; j += kColumns) {
      ColumnDots call{.columns = columns_ + j * width_,
                      .rows = wide,
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
  void take(const RowGroup& group, int64_t key, const float* weights) {
    if (mixes_pairs_) return take_pairs(group, key, weights);
    group.each([&](const RowBlock& block, int64_t at) {
      F.mix_into_f32({.a = weights + at * kKeyBlock,
                      .b = rows_ + at * width_,
                      .y = sums_,
                      .a_row = 1,
                      .a_inner = kKeyBlock,
                      .b_stride = width_,
                      .y_stride = width_,
                      .rows = kKeyBlock,
                      .inner = block.count(),
                      .cols = width_,
                      .add = true});
    });
  }
  const float* sum(int64_t j) const { return sums_ + j * width_; }

 private:
  void take_pairs(const RowGroup& group, int64_t key, const float* weights) {
    alignas(64) uint32_t pairs[RowGroup::kMost / 2 * kKeyBlock];
    std::fill(paired_.rows, paired_.rows + RowGroup::kMost, nullptr);
    int64_t begin = RowGroup::kMost, end = 0;
    group.each([&](const RowBlock& block, int64_t at) {
      for (int64_t r = 0; r < block.count(); ++r) {
        paired_.rows[at + r] =
            static_cast<const uint16_t*>(RowBlock::at(left_, block.row(r).row(), block.row(r).head()));
      }
      begin = std::min(begin, at);
      end = at + block.count();
    });
    F.pair_weights({.y = pairs, .x = weights, .begin = begin, .end = end, .lanes = kKeyBlock});
    paired_.make<F>(RowGroup::kMost, width_);
    mix_pairs<F>({.weights = pairs,
                  .pair_stride = kKeyBlock,
                  .lanes = kKeyBlock,
                  .begin = begin,
                  .end = end,
                  .to = sums_,
                  .cols = width_},
                 paired_, spare_, [&](int64_t j, int64_t r) { return group.sees(r, key + j); });
  }

  const Tensor &keys_, &left_;
  int64_t width_;
  bool pairs_, mixes_pairs_;
  float *columns_, *sums_, *rows_, *spare_;
  PairedRows paired_, given_;
};

// One block of keys of a segment and head. `dq`, where it is found on the way: sums of the rows of all heads that read
// the key head, one head after the other.
struct KeyTask {
  int64_t segment = 0, kv_head = 0, key = 0;
  float* dq = nullptr;
};

template <const Forms& F>
void find_dk_dv_block(const AttentionBackwardArgs& a, const KeyTask& task, Room room) {
  const AttentionInput& in = a.in;
  const Segment& s = ref::segments_of(in)[task.segment];
  const int64_t key = task.key, first = s.first_key + key, count = std::min(kKeyBlock, s.keys - key);
  KeyColumns<F> k(in.k, in.q, room), v(in.v, a.dz, room);
  k.begin(first, count, task.kv_head);
  v.begin(first, count, task.kv_head);
  if (task.dq != nullptr) k.begin_giving(first, count, task.kv_head);
  RowGroup group;
  PairGradients pairs;
  float* dq = task.dq;
  for (int64_t h = 0; h < in.q.dim(1); ++h) {
    if (in.kv_map.as<int32_t>()[h] != task.kv_head) continue;
    for (int64_t row = 0; row < s.rows; row += RowGroup::kMost) {
      if (!group.find(in, {.segment = task.segment, .row = row, .head = h}, s.rows, key)) continue;
      group.each([&](const RowBlock& block, int64_t at) {
        k.meet(block, at, pairs.probs + at * kKeyBlock);
        v.meet(block, at, pairs.ds + at * kKeyBlock);
        pairs.template find_rows<F>(a, block, key, at);
        if (dq != nullptr) k.give(block, key, pairs.ds + at * kKeyBlock, dq + (row + at) * in.q.cols());
      });
      if (a.dk) k.take(group, key, pairs.ds);
      if (a.dv) v.take(group, key, pairs.probs);
    }
    if (dq != nullptr) dq += s.rows * in.q.cols();
  }
  for (int64_t j = 0; j < count; ++j) {
    if (a.dk) add_row<F>(a.dk.tensor, first + j, task.kv_head, k.sum(j), static_cast<float>(in.scale));
    if (a.dv) add_row<F>(a.dv.tensor, first + j, task.kv_head, v.sum(j), 1);
  }
}

template <const Forms& F>
void find_dk_dv(const Exec& exec, const AttentionBackwardArgs& a) {
  const int64_t kv_heads = a.in.k.dim(1), segments = a.in.segments.dim(0);
  const auto blocks_of = [&](int64_t n) { return (ref::segments_of(a.in)[n].keys + kKeyBlock - 1) / kKeyBlock; };
  int64_t tasks = 0;
  for (int64_t n = 0; n < segments; ++n) tasks += blocks_of(n) * kv_heads;
  exec.pool->run(tasks, [&](int64_t task, int thread) {
    int64_t n = 0;
    for (; task >= blocks_of(n) * kv_heads; ++n) task -= blocks_of(n) * kv_heads;
    const KeyTask block{.segment = n, .kv_head = task / blocks_of(n), .key = task % blocks_of(n) * kKeyBlock};
    with_tiles<F>([&] { find_dk_dv_block<F>(a, block, Room(exec, thread)); });
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

template <const Forms& F>
bool finds_all_at_once(const Exec& exec, const AttentionBackwardArgs& a) {
  constexpr int64_t kBlocks = 3 * RowBlock::kMost + 3 * kKeyBlock;  // of which `takes` made sure
  const int64_t bytes =
      (most_rows_of_a_key_head(a.in) * a.in.q.cols() + kBlocks * (a.in.v.cols() + a.in.q.cols() + 2 * kColumns)) *
      size_of(DType::f32);
  const int64_t tasks = a.in.segments.dim(0) * a.in.k.dim(1), threads = exec.pool->threads();
  return mixes_pairs<F>(a.in.q, a.in.k) && bytes <= exec.scratch.dim(1) &&
         (tasks % threads == 0 || tasks >= 4 * threads);
}

template <const Forms& F>
void find_all(const Exec& exec, const AttentionBackwardArgs& a) {
  const AttentionInput& in = a.in;
  const int64_t kv_heads = in.k.dim(1), width = in.q.cols();
  exec.pool->run(in.segments.dim(0) * kv_heads, [&](int64_t task, int thread) {
    const Segment& s = ref::segments_of(in)[task / kv_heads];
    const auto* kv_map = in.kv_map.as<int32_t>();
    KeyTask block{.segment = task / kv_heads, .kv_head = task % kv_heads};
    const int64_t rows = s.rows * std::count(kv_map, kv_map + in.q.dim(1), static_cast<int32_t>(block.kv_head));
    Room room(exec, thread);
    block.dq = room.take(rows * width);
    std::fill(block.dq, block.dq + rows * width, 0.0F);
    with_tiles<F>([&] {
      for (; block.key < s.keys; block.key += kKeyBlock) find_dk_dv_block<F>(a, block, room);
    });
    const float* sums = block.dq;
    for (int64_t h = 0; h < in.q.dim(1); ++h) {
      if (kv_map[h] != block.kv_head) continue;
      for (int64_t r = 0; r < s.rows; ++r, sums += width) {
        add_row<F>(a.dq.tensor, s.first_row + r, h, sums, static_cast<float>(in.scale));
      }
    }
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
  if (a.dq && (a.dk || a.dv) && finds_all_at_once<F>(exec, a)) {
    find_all<F>(exec, a);
  } else {
    if (a.dq) for_row_blocks<F>(exec, a.in, [&](Room& room) { return DqRows<F>(a, room); });
    if (a.dk || a.dv) find_dk_dv<F>(exec, a);
  }
  if (a.dsinks || a.dbias) {
    AttentionBackwardArgs heads = a;
    heads.dq = heads.dk = heads.dv = {};
    ref::attention_backward(split, heads);
  }
}

QKV_FOR_ALL_FORMS(attention_backward, AttentionBackwardArgs)

}  // namespace qkv::kernels::cpu
