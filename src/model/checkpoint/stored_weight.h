// How a file stores a tensor: plain numbers, GGUF blocks, or 8-bit or 4-bit values with a tensor of scales.
#pragma once

#include <optional>
#include <vector>

#include "model/checkpoint/tensor_file.h"
#include "model/checkpoint/tensor_names.h"

namespace qkv {

struct StoredWeight {
  const StoredTensor* tensor = nullptr;  // the values; nullptr: not in the file
  const StoredTensor* scales = nullptr;  // 8-bit floats: one per tile; 4-bit: one per block
  bool pairs = false;                    // 4-bit MXFP4, see decode_mxfp4_pairs

  std::optional<DType> plain() const;  // the dtype of plain numbers
  Block block() const;                 // of GGUF, or none
  std::vector<float> floats() const;   // the whole tensor, in the order of the file
};

StoredWeight find_stored_weight(const TensorFile& file, const std::string& name);

// An Error unless shape and type fit the named tensor.
void check_stored_weight(const TensorFile& file, const NamedTensor& named, const StoredWeight& weight);

}  // namespace qkv
