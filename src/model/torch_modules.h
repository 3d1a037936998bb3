// PyTorch modules from their state dicts: nn.Transformer, nn.MultiheadAttention, and the usual textbook attention class
// (W_query, W_key, W_value). They have no embedding: vectors in, vectors out.
#pragma once

#include <filesystem>

#include "model/stack.h"

namespace qkv {

struct TorchOptions {
  int64_t heads = 0;        // not in a state dict
  bool norm_first = false;  // nn.Transformer's argument
  bool causal = false;      // attention only: a causal mask
  std::string prefix;       // of the tensors' names: "mha."
  Device* device = nullptr;
};

class TorchTransformer {
 public:
  static TorchTransformer load(const std::filesystem::path& file, const TorchOptions& options);

  struct Side {
    Tensor vectors;  // [N, C]
    const Rows& rows;
  };
  Tensor forward(Context& cx, const Side& source, const Side& target) const;  // [N, C] of the target; it is causal

 private:
  TorchTransformer(ModelSpec spec, Weights weights);

  ModelSpec spec_;
  Weights weights_;
  std::unique_ptr<Ropes> ropes_;
  ModelStack encoder_, decoder_;
};

class TorchAttention {
 public:
  // in_proj_weight as nn.MultiheadAttention has it, or W_query, W_key and W_value; biases where the file has them.
  static TorchAttention load(const std::filesystem::path& file, const TorchOptions& options);

  Tensor forward(Context& cx, const Tensor& x, const Rows& rows) const { return attention_.forward(cx, x, {rows}); }

 private:
  TorchAttention(const AttentionSpec& spec, Weights weights);

  Weights weights_;
  std::unique_ptr<Ropes> ropes_;
  Attention attention_;
};

}  // namespace qkv
