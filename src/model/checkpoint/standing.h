// What stands for a tensor of a model in its file: plain numbers, blocks, or what 4-bit and 8-bit checkpoints have in
// its place.
#pragma once

#include <optional>
#include <vector>

#include "model/checkpoint/tensor_file.h"
#include "model/checkpoint/tensor_names.h"

namespace qkv {

struct Standing {
  const StoredTensor* tensor = nullptr;  // plain numbers or blocks; nullptr: nothing stands for it
  const StoredTensor* scales = nullptr;  // 8-bit floats: one scale to a tile; 4-bit: one to a block
  bool pairs = false;                    // 4-bit, `tensor` holds the blocks

  std::optional<DType> plain() const;  // what the numbers are, if they are plain
  Block block() const;                 // GGUF's, or none
  std::vector<float> floats() const;   // the whole tensor, in the order of the file
};

Standing standing_for(const TensorFile& file, const std::string& name);

// An Error unless its shape and type can be those of the named tensor.
void check_standing(const TensorFile& file, const NamedTensor& named, const Standing& standing);

}  // namespace qkv
