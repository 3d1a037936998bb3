// The cross-entropy fused with the output projection, f32 and bf16 operands; formulas in ops/cross_entropy.cpp. Logits
// exist only as blocks of rows x vocabulary in a thread's scratch memory; backward recomputes them.
//
//   losses, dx   a row belongs to one thread; vocabulary blocks start at multiples of kVocabBlock, whatever the rows
//   dw, db       a vocabulary entry belongs to one thread that adds the rows in order
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu/linear.h"

namespace qkv::kernels::cpu {
namespace {

using Layout = TileSide::Layout;

constexpr int64_t kVocabBlock = 512, kRows = 64;  // a block of logits
constexpr int64_t kManyRows = 512;                // that share a block of w while it is in the L2 cache

constexpr int64_t kLogits = kRows * kVocabBlock * size_of(DType::f32);  // bytes
bool fits(const Exec& exec) {
  return kLogits + kTileScratch <= exec.scratch.dim(1);
}

int64_t length(Range r) {
  return r.end - r.begin;
}

// y = x[rows] w[vocab]^T, rows of y `stride` apart.
struct Head {
  const Tensor &x, &w, &tiles;
  void* scratch;
};
void products(const Head& head, Range rows, Range vocab, float* y, int64_t stride, const IsaKernels& isa) {
  const Tensor &x = head.x, &w = head.w;
  if (isa.pack_weight != nullptr && x.dtype() == DType::bf16) {
    return isa.tile_product({.a = {static_cast<const uint16_t*>(at(x, rows.begin, 0)), x.stride(0)},
                             .b = weight_side(w, head.tiles, vocab.begin),
                             .rows = length(rows),
                             .cols = length(vocab),
                             .inner = x.cols(),
                             .epilogue = {.y = {y, stride}},
                             .scratch = head.scratch});
  }
  (x.dtype() == DType::f32 ? isa.matmul_nt_f32
                           : isa.matmul_nt_bf16)({.x = float_row_at(x, rows.begin * x.stride(0)).data,
                                                  .w = float_row_at(w, vocab.begin * w.stride(0)).data,
                                                  .y = y,
                                                  .x_stride = x.stride(0),
                                                  .w_stride = w.stride(0),
                                                  .y_stride = stride,
                                                  .rows = length(rows),
                                                  .outputs = length(vocab),
                                                  .inner = x.cols()});
}

void some_losses(const CrossEntropyArgs& a, Range rows, float* logits, const IsaKernels& isa) {
  const int64_t vocabulary = a.w.dim(0);
  const auto* targets = a.targets.as<int32_t>();
  const Head head{a.x, a.w, a.tiles, logits + kRows * kVocabBlock};
  std::array<HeadStep, kManyRows> steps;
  std::array<float, kManyRows> on_target{};
  for (HeadStep& step : steps) {
    step = {.cap = static_cast<float>(a.rule.softcap), .highest = -std::numeric_limits<float>::infinity()};
  }
  for (int64_t first = 0; first < vocabulary; first += kVocabBlock) {
    const Range vocab{first, std::min(first + kVocabBlock, vocabulary)};
    for (int64_t r = rows.begin; r < rows.end; r += kRows) {
      const Range some{r, std::min(r + kRows, rows.end)};
      products(head, some, vocab, logits, kVocabBlock, isa);
      for (int64_t i = some.begin; i < some.end; ++i) {
        const auto at = static_cast<size_t>(i - rows.begin);
        HeadStep& step = steps[at];
        step.logits = logits + (i - r) * kVocabBlock;
        step.bias = float_row_at(a.b, first);
        step.count = length(vocab);
        isa.head_step(step);
        const int64_t target = targets[i] - first;
        if (target >= 0 && target < step.count) on_target[at] = step.logits[target];
      }
    }
  }
  const auto smoothing = static_cast<float>(a.rule.smoothing), z_loss = static_cast<float>(a.rule.z_loss);
  for (int64_t i = 0; i < length(rows); ++i) {
    const HeadStep& step = steps[static_cast<size_t>(i)];
    const float lse = step.highest + std::log(step.total);
    float loss = 0;
    if (targets[rows.begin + i] != a.rule.ignore) {
      loss = (1 - smoothing) * (lse - on_target[static_cast<size_t>(i)]) + z_loss * lse * lse;
      if (smoothing > 0) loss += smoothing * (lse - step.sum / static_cast<float>(vocabulary));
    }
    a.losses.as<float>()[rows.begin + i] = loss;
    a.lse.as<float>()[rows.begin + i] = lse;
  }
}

// d loss / d product of some rows and a block of the vocabulary.
void compute_dlogits(const CrossEntropyBackwardArgs& a, Range rows, Range vocab, float* d, void* scratch,
                     const IsaKernels& isa) {
  products({a.x, a.w, a.tiles, scratch}, rows, vocab, d, kVocabBlock, isa);
  const auto smoothing = static_cast<float>(a.rule.smoothing), z_loss = static_cast<float>(a.rule.z_loss);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* row = d + (r - rows.begin) * kVocabBlock;
    const int64_t target = a.targets.as<int32_t>()[r];
    if (target == a.rule.ignore) {
      std::fill(row, row + length(vocab), 0.0F);
      continue;
    }
    const float lse = a.lse.as<float>()[r];
    isa.head_gradient({.logits = row,
                       .bias = float_row_at(a.b, vocab.begin),
                       .count = length(vocab),
                       .target = target - vocab.begin,
                       .cap = static_cast<float>(a.rule.softcap),
                       .lse = lse,
                       .weight = 1 + 2 * z_loss * lse,
                       .everywhere = smoothing / static_cast<float>(a.w.dim(0)),
                       .on_target = 1 - smoothing,
                       .scale = a.dloss.as<float>()[0] * static_cast<float>(a.factor)});
  }
}

// Backward takes some rows and a block of the vocabulary at a time. The owners of the rows compute the gradients of the
// logits once and add them to dx; then the owners of the vocabulary entries add them to dw and db. The number of rows
// depends on the width alone, and the order of neither sum depends on it.
class HeadBackward {
 public:
  HeadBackward(const Exec& exec, const CrossEntropyBackwardArgs& a, const IsaKernels& isa)
      : exec_(exec),
        a_(a),
        isa_(isa),
        width_(a.x.cols()),
        vocabulary_(a.w.dim(0)),
        pairs_(isa.tile_product != nullptr && a.x.dtype() == DType::bf16),
        direct_(a.dx && a.dx.tensor.dtype() == DType::f32) {}

  // How many rows fit; 0 if the model is too wide.
  static int64_t rows_at_once(const Exec& exec, int64_t width) {
    const int64_t left = exec.scratch.dim(1) - kLogits - kTileScratch - kManyRows * kVocabBlock * size_of(DType::f32);
    return std::clamp<int64_t>(left / (width * size_of(DType::f32)), 0, kManyRows) / 8 * 8;
  }

  void operator()() {
    const int64_t most = rows_at_once(exec_, width_), all = a_.x.rows();
    int64_t first = 0;
    do {  // once even for no rows: the gradient of an unused head is zero
      rows_ = {first, std::min(first + most, all)};
      for (int64_t token = 0; token < vocabulary_; token += kVocabBlock) {
        vocab_ = {token, std::min(token + kVocabBlock, vocabulary_)};
        over_thread_ranges(exec_, length(rows_), 8, [&](Range mine, int thread) {
          compute(mine, thread);
          if (a_.dx) add_to_dx(mine, thread);
        });
        if (!a_.dw && !a_.db) continue;
        over_thread_ranges(exec_, length(vocab_), 16, [&](Range mine, int thread) {
          if (a_.db) add_to_db(mine);
          if (a_.dw) add_to_dw(mine, thread);
        });
      }
      first = rows_.end;
    } while (first < all);
  }

 private:
  // Per thread.
  float* logits(int thread) const { return scratch_of(exec_, thread); }
  void* tile_scratch(int thread) const { return logits(thread) + kRows * kVocabBlock; }
  // Shared by all threads: gradients of the logits from a row on, bf16 for products of pairs; and f32 sums of dx.
  FloatRow dlogits(int64_t row, int64_t token = 0) const {
    std::byte* start = exec_.scratch.data() + kLogits + kTileScratch;
    return {start + (row * kVocabBlock + token) * size_of(pairs_ ? DType::bf16 : DType::f32), pairs_};
  }
  float* sums(int64_t row) const {
    if (direct_) return a_.dx.tensor.as<float>() + (rows_.begin + row) * a_.dx.tensor.stride(0);
    std::byte* start = exec_.scratch.data() + kLogits + kTileScratch + kManyRows * kVocabBlock * size_of(DType::f32);
    return reinterpret_cast<float*>(start) + row * width_;
  }

  // Rows are relative to rows_.begin, vocabulary entries to vocab_.begin.
  void compute(Range mine, int thread) const {
    for (int64_t r = mine.begin; r < mine.end; r += kRows) {
      const Range some{rows_.begin + r, rows_.begin + std::min(r + kRows, mine.end)};
      float* to = pairs_ ? logits(thread) : static_cast<float*>(dlogits(r).data);
      compute_dlogits(a_, some, vocab_, to, tile_scratch(thread), isa_);
      for (int64_t i = 0; i < length(some) && pairs_; ++i) {
        isa_.narrow(static_cast<uint16_t*>(dlogits(r + i).data), to + i * kVocabBlock, length(vocab_));
      }
    }
  }

  void add_to_dx(Range mine, int thread) const {
    const MatmulNnCall call{.b = float_row_at(a_.w, vocab_.begin * a_.w.stride(0)).data,
                            .y = sums(mine.begin),
                            .a_row = kVocabBlock,
                            .a_inner = 1,
                            .b_stride = a_.w.stride(0),
                            .y_stride = direct_ ? a_.dx.tensor.stride(0) : width_,
                            .rows = length(mine),
                            .inner = length(vocab_),
                            .cols = width_,
                            .add = vocab_.begin > 0 || (direct_ && a_.dx.add)};
    multiply_add(call, dlogits(mine.begin), thread);
    if (direct_ || vocab_.end < vocabulary_) return;
    const Tensor& dx = a_.dx.tensor;
    for (int64_t r = mine.begin; r < mine.end; ++r) {
      isa_.scaled_row(float_row_at(dx, (rows_.begin + r) * dx.stride(0)), {sums(r)}, 1, a_.dx.add, width_);
    }
  }

  void add_to_dw(Range mine, int thread) const {
    const Tensor& dw = a_.dw.tensor;
    const MatmulNnCall call{.b = float_row_at(a_.x, rows_.begin * a_.x.stride(0)).data,
                            .y = dw.as<float>() + (vocab_.begin + mine.begin) * dw.stride(0),
                            .a_row = 1,
                            .a_inner = kVocabBlock,
                            .b_stride = a_.x.stride(0),
                            .y_stride = dw.stride(0),
                            .rows = length(mine),
                            .inner = length(rows_),
                            .cols = width_,
                            .add = rows_.begin > 0 || a_.dw.add};
    multiply_add(call, dlogits(0, mine.begin), thread);
  }

  void add_to_db(Range mine) const {
    float* db = a_.db.tensor.as<float>() + vocab_.begin + mine.begin;
    if (rows_.begin == 0 && !a_.db.add) std::fill(db, db + length(mine), 0.0F);
    for (int64_t r = 0; r < length(rows_); ++r) isa_.scaled_row({db}, dlogits(r, mine.begin), 1, true, length(mine));
  }

  void multiply_add(MatmulNnCall call, FloatRow a, int thread) const {
    if (!pairs_) {
      call.a = static_cast<const float*>(a.data);
      return (a_.x.dtype() == DType::f32 ? isa_.matmul_nn_f32 : isa_.matmul_nn_bf16)(call);
    }
    isa_.tile_product({.a = {static_cast<const uint16_t*>(a.data), kVocabBlock,
                             call.a_inner == kVocabBlock ? Layout::k_strided : Layout::k_contiguous},
                       .b = {static_cast<const uint16_t*>(call.b), call.b_stride, Layout::k_strided},
                       .rows = call.rows,
                       .cols = call.cols,
                       .inner = call.inner,
                       .epilogue = {.y = {call.y, call.y_stride}, .add = call.add},
                       .scratch = tile_scratch(thread)});
  }

  const Exec& exec_;
  const CrossEntropyBackwardArgs& a_;
  const IsaKernels& isa_;
  int64_t width_, vocabulary_;
  bool pairs_, direct_;
  Range rows_, vocab_;  // current block
};

// f(Range, scratch) for blocks of at most `block` rows of what a thread owns.
template <class F>
void over_blocks(const Exec& exec, int64_t count, int64_t block, F&& f) {
  over_thread_ranges(exec, count, 1, [&](Range mine, int thread) {
    float* scratch = scratch_of(exec, thread);
    for (int64_t i = mine.begin; i < mine.end; i += block) f(Range{i, std::min(i + block, mine.end)}, scratch);
  });
}

}  // namespace

void cross_entropy(const Exec& exec, const CrossEntropyArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.w, &a.b}) || a.x.dtype() != a.w.dtype() || !all_f32({&a.losses, &a.lse}) || !fits(exec)) {
    return ref::cross_entropy(ref::Split(*exec.pool), a);
  }
  over_blocks(exec, a.x.rows(), kManyRows, [&](Range rows, float* scratch) { some_losses(a, rows, scratch, isa); });
}

void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a, const IsaKernels& isa) noexcept {
  if (!all_float({&a.x, &a.w, &a.b, &a.dx.tensor}) || a.x.dtype() != a.w.dtype() ||
      !all_f32({&a.lse, &a.dloss, &a.dw.tensor, &a.db.tensor}) || HeadBackward::rows_at_once(exec, a.x.cols()) == 0) {
    return ref::cross_entropy_backward(ref::Split(*exec.pool), a);
  }
  HeadBackward(exec, a, isa)();
}

}  // namespace qkv::kernels::cpu
