// What bf16 logits are held to.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "io/safetensors.h"

namespace qkv {

// The experts each row chose, in ascending order; and by layer.
using RowChoices = std::vector<std::vector<int32_t>>;
using Choices = std::map<int64_t, RowChoices>;

struct HalfBounds {
  static constexpr double kNmse = 5e-4, kKl = 1e-3;
  double nmse = kNmse;  // of the logits
  double kl = kKl;      // mean over rows
  int64_t missed = 0;   // rows with a clear first guess that may have another
  Choices choices;      // of f32, where routing was not recorded: a row that chose otherwise is left out
};

// Where the reference's own bf16 is far from its f32 (a row that other experts serve), the bound is wider: 1.5 times its
// NMSE, which BF16_ON_GPU.json beside the folder may say by the folder's name.
double half_nmse(const std::filesystem::path& folder);

RowChoices recorded_choices(const StoredTensor& router_logits, int64_t top_k);

}  // namespace qkv
