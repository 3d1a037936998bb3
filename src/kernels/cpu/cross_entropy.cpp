// The cross-entropy fused with the head, f32 and bf16 operands; formulas in ops/cross_entropy.cpp. Logits exist as
// blocks of some rows and some of the vocabulary in a thread's scratch and are computed again where backward needs
// them.
//
//   losses, dx   rows belong to one thread; blocks of the vocabulary start at multiples of kWords, whatever the rows
//   dw, db       entries of the vocabulary belong to one thread that walks the rows in order
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu/shared.h"

namespace qkv::kernels::cpu {
namespace {

constexpr int64_t kWords = 512, kRows = 64;              // a block where rows are owned
constexpr int64_t kWordsOwned = 128, kRowsWalked = 512;  // a block where words are owned

bool fits(const Exec& exec, const Tensor& x) {
  return (kWords + x.cols()) * size_of(DType::f32) <= exec.scratch.dim(1) &&
         kWordsOwned * kRowsWalked * size_of(DType::f32) <= exec.scratch.dim(1);
}

int64_t length(Range r) {
  return r.end - r.begin;
}

// x[rows] w[words]^T, rows of `stride`.
template <const Forms& F>
void products(const Tensor& x, const Tensor& w, Range rows, Range words, float* y, int64_t stride) {
  (x.dtype() == DType::f32 ? F.dots_f32 : F.dots_bf16)({.x = floats_at(x, rows.begin * x.stride(0)).data,
                                                        .w = floats_at(w, words.begin * w.stride(0)).data,
                                                        .y = y,
                                                        .x_stride = x.stride(0),
                                                        .w_stride = w.stride(0),
                                                        .y_stride = stride,
                                                        .rows = length(rows),
                                                        .outputs = length(words),
                                                        .inner = x.cols()});
}

template <const Forms& F>
void some_losses(const CrossEntropyArgs& a, Range rows, float* logits) {
  const int64_t vocabulary = a.w.dim(0);
  const auto* targets = a.targets.as<int32_t>();
  std::array<HeadStep, kRows> steps;
  std::array<float, kRows> on_target{};
  for (HeadStep& step : steps) {
    step = {.cap = static_cast<float>(a.rule.softcap), .highest = -std::numeric_limits<float>::infinity()};
  }
  for (int64_t first = 0; first < vocabulary; first += kWords) {
    const Range words{first, std::min(first + kWords, vocabulary)};
    products<F>(a.x, a.w, rows, words, logits, kWords);
    for (int64_t i = 0; i < length(rows); ++i) {
      HeadStep& step = steps[static_cast<size_t>(i)];
      step.logits = logits + i * kWords;
      step.bias = floats_at(a.b, first);
      step.count = length(words);
      F.head_step(step);
      const int64_t target = targets[rows.begin + i] - first;
      if (target >= 0 && target < step.count) on_target[static_cast<size_t>(i)] = step.logits[target];
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

// d loss / d product of some rows and words.
template <const Forms& F>
void find_dlogits(const CrossEntropyBackwardArgs& a, Range rows, Range words, float* d, int64_t stride) {
  products<F>(a.x, a.w, rows, words, d, stride);
  const auto smoothing = static_cast<float>(a.rule.smoothing), z_loss = static_cast<float>(a.rule.z_loss);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* row = d + (r - rows.begin) * stride;
    const int64_t target = a.targets.as<int32_t>()[r];
    if (target == a.rule.ignore) {
      std::fill(row, row + length(words), 0.0F);
      continue;
    }
    const float lse = a.lse.as<float>()[r];
    F.head_gradient({.logits = row,
                     .bias = floats_at(a.b, words.begin),
                     .count = length(words),
                     .target = target - words.begin,
                     .cap = static_cast<float>(a.rule.softcap),
                     .lse = lse,
                     .weight = 1 + 2 * z_loss * lse,
                     .everywhere = smoothing / static_cast<float>(a.w.dim(0)),
                     .on_target = 1 - smoothing,
                     .scale = a.dloss.as<float>()[0] * static_cast<float>(a.factor)});
  }
}

template <const Forms& F>
void some_dx(const CrossEntropyBackwardArgs& a, Range rows, float* scratch) {
  const Tensor& dx = a.dx.tensor;
  const int64_t width = a.x.cols(), vocabulary = a.w.dim(0);
  const bool direct = dx.dtype() == DType::f32;
  float* sums = scratch + length(rows) * kWords;
  for (int64_t first = 0; first < vocabulary; first += kWords) {
    const Range words{first, std::min(first + kWords, vocabulary)};
    find_dlogits<F>(a, rows, words, scratch, kWords);
    (a.w.dtype() == DType::f32 ? F.mix_f32
                               : F.mix_bf16)({.a = scratch,
                                              .b = floats_at(a.w, first * a.w.stride(0)).data,
                                              .y = direct ? dx.as<float>() + rows.begin * dx.stride(0) : sums,
                                              .a_row = kWords,
                                              .a_inner = 1,
                                              .b_stride = a.w.stride(0),
                                              .y_stride = direct ? dx.stride(0) : width,
                                              .rows = length(rows),
                                              .inner = length(words),
                                              .cols = width,
                                              .add = first > 0 || (direct && a.dx.add)});
  }
  for (int64_t i = 0; i < length(rows) && !direct; ++i) {
    F.scaled_row(floats_at(dx, (rows.begin + i) * dx.stride(0)), {sums + i * width}, 1, a.dx.add, width);
  }
}

template <const Forms& F>
void some_dw(const CrossEntropyBackwardArgs& a, Range words, float* scratch) {
  const int64_t width = a.x.cols(), all = a.x.rows();
  float* db = a.db ? a.db.tensor.as<float>() + words.begin : nullptr;
  if (db != nullptr && !a.db.add) std::fill(db, db + length(words), 0.0F);
  bool add = a.dw.add;
  int64_t r = 0;
  do {  // once even for no rows: the gradient of an unused head is zero
    const Range rows{r, std::min(r + kRowsWalked, all)};
    find_dlogits<F>(a, rows, words, scratch, kWordsOwned);
    for (int64_t i = 0; i < length(rows) && db != nullptr; ++i) {
      F.scaled_row({db}, {scratch + i * kWordsOwned}, 1, true, length(words));
    }
    if (a.dw) {
      const Tensor& dw = a.dw.tensor;
      (a.x.dtype() == DType::f32 ? F.mix_f32 : F.mix_bf16)({.a = scratch,
                                                            .b = floats_at(a.x, r * a.x.stride(0)).data,
                                                            .y = dw.as<float>() + words.begin * dw.stride(0),
                                                            .a_row = 1,
                                                            .a_inner = kWordsOwned,
                                                            .b_stride = a.x.stride(0),
                                                            .y_stride = dw.stride(0),
                                                            .rows = length(words),
                                                            .inner = length(rows),
                                                            .cols = width,
                                                            .add = add});
    }
    add = true;
    r = rows.end;
  } while (r < all);
}

// Blocks of at most `block` of what a thread owns.
template <class F>
void over_blocks(const Exec& exec, int64_t count, int64_t block, F&& f) {
  over_stretches(exec, count, 1, [&](Range mine, int thread) {
    int64_t room = 0;
    float* scratch = scratch_of(exec, thread, &room);
    for (int64_t i = mine.begin; i < mine.end; i += block) f(Range{i, std::min(i + block, mine.end)}, scratch);
  });
}

}  // namespace

template <const Forms& F>
void cross_entropy(const Exec& exec, const CrossEntropyArgs& a) noexcept {
  if (!all_simple({&a.x, &a.w, &a.b}) || a.x.dtype() != a.w.dtype() || !all_f32({&a.losses, &a.lse}) ||
      !fits(exec, a.x)) {
    return ref::cross_entropy(ref::Split(*exec.pool), a);
  }
  over_blocks(exec, a.x.rows(), kRows, [&](Range rows, float* scratch) { some_losses<F>(a, rows, scratch); });
}

template <const Forms& F>
void cross_entropy_backward(const Exec& exec, const CrossEntropyBackwardArgs& a) noexcept {
  if (!all_simple({&a.x, &a.w, &a.b, &a.dx.tensor}) || a.x.dtype() != a.w.dtype() ||
      !all_f32({&a.lse, &a.dloss, &a.dw.tensor, &a.db.tensor}) || !fits(exec, a.x)) {
    return ref::cross_entropy_backward(ref::Split(*exec.pool), a);
  }
  if (a.dx) {
    const int64_t room = exec.scratch.dim(1) / size_of(DType::f32);
    const int64_t block = std::clamp<int64_t>(room / (kWords + a.x.cols()), 1, kRows);
    over_blocks(exec, a.x.rows(), block, [&](Range rows, float* scratch) { some_dx<F>(a, rows, scratch); });
  }
  if (a.dw || a.db) {
    over_blocks(exec, a.w.dim(0), kWordsOwned, [&](Range words, float* scratch) { some_dw<F>(a, words, scratch); });
  }
}

QKV_FOR_ALL_FORMS(cross_entropy, CrossEntropyArgs)
QKV_FOR_ALL_FORMS(cross_entropy_backward, CrossEntropyBackwardArgs)

}  // namespace qkv::kernels::cpu
