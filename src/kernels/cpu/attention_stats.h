// Statistics of a block of rows, computed during the softmax; formulas in kernels/ref/attention_stats.h. Sums are
// relative to the running maximum and rescaled with it.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/cpu/attention.h"

namespace qkv::kernels::cpu {

class BlockRowStats {
 public:
  static bool wanted(const AttentionStats& s) {
    return s.entropy.defined() || s.distance.defined() || s.first.defined() || s.highest.defined() ||
           s.argmax.defined() || s.at_offset.defined() || s.in_class.defined();
  }

  explicit BlockRowStats(const AttentionStats& stats)
      : stats_(stats),
        entropy_(stats.entropy),
        distance_of_(stats.distance),
        highest_(stats.highest),
        first_of_(stats.first),
        at_offset_of_(stats.at_offset),
        in_class_of_(stats.in_class),
        argmax_(stats.argmax),
        offsets_(stats.at_offset.defined() ? stats.offsets.count() : 0),
        classes_(stats.in_class.defined() ? stats.in_class.dim(2) : 0),
        at_offset_(static_cast<size_t>(offsets_ * kRows)),
        in_class_(static_cast<size_t>(classes_ * kRows)) {}

  void begin(const RowBlock& block) {
    block_ = &block;
    for (float* sums : {mass_, mass_x_, distance_}) std::fill(sums, sums + kRows, 0.0F);
    std::fill(top_key_, top_key_ + kRows, -1);
    std::fill(first_, first_ + kRows, kHidden);
    std::fill(at_offset_.begin(), at_offset_.end(), kHidden);
    std::fill(in_class_.begin(), in_class_.end(), 0.0F);
    single_begin_ = INT64_MAX;
    single_end_ = INT64_MIN;
    for (int64_t r = 0; r < block.count() * offsets_; ++r) {
      const int64_t key = key_at(r / offsets_, r % offsets_);
      single_begin_ = std::min(single_begin_, key);
      single_end_ = std::max(single_end_, key + 1);
    }
  }

  // Adds a block's sums to row r; `where` is the block's first key with the largest score.
  void add(int64_t r, float rescale, float mass, const BlockStats& sums, int64_t where) {
    const bool hidden = sums.highest == kHidden;
    block_mass_[r] = mass;
    mass_[r] = mass_[r] * rescale + (hidden ? 0 : mass);
    mass_x_[r] = mass_x_[r] * rescale + (hidden ? 0 : sums.mass_x);
    distance_[r] = distance_[r] * rescale + (hidden ? 0 : sums.distance);
    if (!hidden && (top_key_[r] < 0 || sums.highest > top_score_[r])) {
      top_score_[r] = sums.highest;
      top_key_[r] = where;
    }
  }

  // Then the statistics only some blocks or callers have: scores of single keys, masses of key classes.
  void add_singles(int64_t key, const Tile& scores, const Tile& probs, const float* rescale) {
    const bool singles = key == 0 || (key < single_end_ && key + kKeyBlock > single_begin_);
    if (classes_ > 0) find_marked(key);
    for (int64_t r = 0; r < block_->count() && (singles || classes_ > 0); ++r) {
      const Keys seen = block_->seen(r, key);
      const auto keep = [&](int64_t j, float& x) {
        if (j >= seen.begin && j < seen.end) x = scores(r, j - key);
      };
      keep(0, first_[r]);
      for (int64_t o = 0; o < offsets_; ++o) keep(key_at(r, o), at_offset_[static_cast<size_t>(r * offsets_ + o)]);
      if (classes_ > 0) add_classes(r, key, probs, rescale[r]);
    }
  }

  // total: sum of all exp(x - max), a sink included.
  void write(int64_t r, float total, float lse) const {
    const int64_t n = block_->row(r).row(), head = block_->row(r).head();
    const float norm = total != 0 ? 1 / total : 0;
    const bool none = top_key_[r] < 0;
    const auto probability = [&](float x) { return x == kHidden ? 0 : std::exp(x - lse); };
    entropy_.put(n, head, none ? 0 : mass_[r] * norm * lse - mass_x_[r] * norm);
    distance_of_.put(n, head, distance_[r] * norm);
    highest_.put(n, head, none ? 0 : std::exp(top_score_[r] - lse));
    first_of_.put(n, head, probability(first_[r]));
    argmax_.put(n, head, static_cast<int32_t>(top_key_[r]));
    for (int64_t o = 0; o < offsets_; ++o) {
      at_offset_of_.at(n, head)[o] = probability(at_offset_[static_cast<size_t>(r * offsets_ + o)]);
    }
    for (int64_t c = 0; c < classes_; ++c) {
      in_class_of_.at(n, head)[c] = in_class_[static_cast<size_t>(r * classes_ + c)] * norm;
    }
  }

 private:
  static constexpr int64_t kRows = RowBlock::kMost;
  static constexpr float kHidden = ref::QueryRow<float>::kHidden;

  // One or more values for each row and head; does nothing if the tensor is absent.
  template <class T>
  class PerHead {
   public:
    explicit PerHead(const Tensor& t) {
      if (!t.defined()) return;
      data_ = t.as<T>();
      row_ = t.stride(0);
      head_ = t.stride(1);
    }
    T* at(int64_t n, int64_t head) const { return data_ + n * row_ + head * head_; }
    void put(int64_t n, int64_t head, T value) const {
      if (data_ != nullptr) *at(n, head) = value;
    }

   private:
    T* data_ = nullptr;
    int64_t row_ = 0, head_ = 0;
  };

  int64_t key_at(int64_t r, int64_t offset) const {
    return block_->row(r).position() - stats_.offsets.as<int32_t>()[offset];
  }

  // Keys of a block that are not of class 0; they are few, and the same for all rows.
  void find_marked(int64_t key) {
    marked_ = 0;
    const Keys keys = block_->seen(key);
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const int32_t key_class = stats_.key_classes.as<int32_t>()[block_->row(0).slot(j)];
      if (key_class != 0) marks_[marked_++] = {j, key_class};
    }
  }
  void add_classes(int64_t r, int64_t key, const Tile& probs, float rescale) {
    float *masses = in_class_.data() + r * classes_, rest = block_mass_[r];
    for (int64_t c = 0; c < classes_; ++c) masses[c] *= rescale;
    for (int64_t m = 0; m < marked_; ++m) {
      if (!block_->row(r).sees(marks_[m].key)) continue;
      const float p = probs(r, marks_[m].key - key);
      masses[marks_[m].key_class] += p;
      rest -= p;
    }
    masses[0] += std::max(rest, 0.0F);
  }

  const AttentionStats& stats_;
  PerHead<float> entropy_, distance_of_, highest_, first_of_, at_offset_of_, in_class_of_;
  PerHead<int32_t> argmax_;
  int64_t offsets_, classes_;
  const RowBlock* block_ = nullptr;
  float mass_[kRows], mass_x_[kRows], distance_[kRows], top_score_[kRows], first_[kRows], block_mass_[kRows];
  int64_t top_key_[kRows];  // the key with the largest score
  int64_t single_begin_ = 0, single_end_ = 0;
  std::vector<float> at_offset_, in_class_;  // [kRows, offsets], [kRows, classes]
  struct Mark {
    int64_t key;
    int32_t key_class;
  };
  Mark marks_[kKeyBlock];
  int64_t marked_ = 0;
};

}  // namespace qkv::kernels::cpu
