// Whether two specs describe the same computation.
#pragma once

#include <string>

#include "model/spec.h"

namespace qkv {

// The first thing in which they differ, with both values: "layer 1 window is 8 and 0"; "" if they compute the same.
// Numbers may differ by what a float rounds away; names, dropout, initialisation and norms' offsets do not count.
std::string difference(const ModelSpec& a, const ModelSpec& b);

}  // namespace qkv
