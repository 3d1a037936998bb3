// Tensors of a recording as numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace qkv {

std::vector<float> recorded_floats(const StoredTensor& tensor);
std::vector<int32_t> recorded_ids(const StoredTensor& tensor);  // I64 or I32; an Error for what no id can be

struct RecordedBatch {  // [B, T] ids, of which the first lengths[b] of row b count
  int64_t batch = 0, length = 0;
  std::vector<int32_t> ids, lengths;

  std::span<const int32_t> row(int64_t b) const;  // what counts of it
  void all_count() { lengths.assign(static_cast<size_t>(batch), static_cast<int32_t>(length)); }
};
// With 'attention_mask', if it is 'input_ids'.
RecordedBatch recorded_batch(const Safetensors& io, const std::string& name);

// What the reference wrote: its name begins with generate_.
bool is_recorded_text(const StoredTensor& tensor);

struct Distance {
  double nmse = 0, worst = 0;  // worst difference in standard deviations of what is right
};
Distance distance(std::span<const float> got, std::span<const float> right);

}  // namespace qkv
