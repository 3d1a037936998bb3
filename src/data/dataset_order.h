// The order of training samples. Sample k is a pure function of the packed data, the seed and k: there is no state,
// nothing to skip on resume, and any division of k over micro-batches and ranks reads the same samples. Epoch e is
// k in [e * per_epoch, (e + 1) * per_epoch) and contains everything exactly once.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace qkv {

inline constexpr int32_t kIgnoredTarget = -100;  // target of positions without loss

// Rows of equal length, concatenated, with the lengths of the document pieces in them for `Rows::ragged`.
struct TextBatch {
  std::vector<int32_t> tokens;   // [rows * length]
  std::vector<int32_t> targets;  // the next token of the same document, or kIgnoredTarget after its last one
  std::vector<int32_t> lengths;  // of the pieces: attention stays inside a piece
  int64_t counted = 0;           // targets that are not ignored
};

struct TextOrder {
  int64_t length = 0;  // tokens in a sample
  uint64_t seed = 0;
};

// Language modelling. A sample is a window of the split's tokens; windows do not overlap. The last one is padded with a
// piece of zeros without loss. The split must outlive this.
class TextSamples {
 public:
  TextSamples(const PackedSplit& split, TextOrder order);

  uint64_t per_epoch() const { return windows_; }
  void append(uint64_t k, TextBatch& batch) const;
  TextBatch batch(uint64_t first, int64_t rows) const;  // samples first .. first + rows - 1

 private:
  const PackedSplit& split_;
  TextOrder order_;
  uint64_t windows_;
};

// Concatenated pairs, without padding.
struct PairBatch {
  std::vector<int32_t> sources, targets;
  std::vector<int32_t> source_lengths, target_lengths;
  std::vector<uint64_t> pairs;  // their indices in the split
};

// What a pair adds to a batch, at least: its lengths, rounded up to those of its bucket.
uint64_t padded_pair_tokens(uint64_t source, uint64_t target);
inline constexpr uint32_t kPairBucket = 4;  // lengths in a bucket

struct PairOrder {
  int64_t tokens = 0;  // limit of a batch if it were padded: pairs * (longest source + longest target)
  uint64_t seed = 0;
};

// Translation. Pairs of similar lengths form a bucket. Batch boundaries in the sequence of buckets are fixed for all
// epochs; the pairs inside each bucket and the order of the batches are shuffled in each epoch.
class PairBatches {
 public:
  PairBatches(const PackedSplit& split, PairOrder order);

  uint64_t per_epoch() const { return cuts_.size() - 1; }
  PairBatch batch(uint64_t k) const;

 private:
  const PackedSplit& split_;
  PairOrder order_;
  std::vector<uint32_t> pairs_;    // by bucket
  std::vector<uint64_t> buckets_;  // start of each in pairs_, and the end
  std::vector<uint64_t> cuts_;     // start of each batch in pairs_, and the end
};

}  // namespace qkv
