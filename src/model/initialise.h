// Initial weights of a model, drawn as published for its family. Each number depends only on the seed, the name of its
// weight and its index: not on threads, files or the stored dtype.
#pragma once

#include <filesystem>
#include <span>

#include "base/thread_pool.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

// The numbers [first, first + out.size()) of a weight.
void initial_numbers(const WeightSpec& weight, uint64_t seed, int64_t first, std::span<float> out);

struct NewModelOptions {
  uint64_t seed = 0;
  std::string dtype = "F32";  // or "BF16", "F16": rounded from the same numbers
};

// Writes a Hugging Face folder, a piece of a tensor at a time: the model may be larger than memory.
void write_new_model(const std::filesystem::path& folder, const Json& config, const NewModelOptions& options,
                     ThreadPool& pool, const WriteProgress& progress = {});

}  // namespace qkv
