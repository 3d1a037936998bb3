// Whether the models of a server fit into memory together, each on its device, before any is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/storage.h"

namespace qkv::server {

struct ModelNeed {
  std::string model;
  const Device* device = nullptr;
  int64_t bytes = 0;
};

// An Error that says need and have of the first device that is too small.
void check_needs(const std::vector<ModelNeed>& needs);

}  // namespace qkv::server
