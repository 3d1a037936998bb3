// Quantises a model into a new folder.
#pragma once

#include "core/engine.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct QuantizeOptions {
  Format to;                                  // q8 or q4, with its group
  std::vector<std::filesystem::path> copied;  // other files to copy: the tokenizer etc.
  WriteProgress progress;
};

struct QuantizeReport {
  struct Kind {  // weights of one part of the model
    Part part;
    Format format;
    int64_t weights = 0, numbers = 0, bytes = 0;
    double worst = 0, mean = 0;  // error of a weight: root of the square error over the square sum
  };
  std::vector<Kind> kinds;
  int64_t numbers = 0, bytes_before = 0, bytes_after = 0;  // of all weights
  std::vector<std::string> notes;                          // what stayed as it is and is no vector, and why
  double bits() const { return 8 * static_cast<double>(bytes_after) / static_cast<double>(numbers); }
};

// What a weight becomes. Matrices of attention, feed-forward and experts take `to`; embeddings and heads, which every
// token reads directly, q8; nothing else, and no rows that are not whole groups.
std::optional<Format> quantized_format(const WeightSpec& weight, Format to);

// Weights pass through a piece at a time, so the model may be larger than memory. The folder appears whole or not at
// all, and nothing is overwritten. The engine is one of the host.
QuantizeReport quantize_model(const Checkpoint& source, const std::filesystem::path& folder, const Engine& engine,
                              const QuantizeOptions& options);

}  // namespace qkv
