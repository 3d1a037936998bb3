// Whether two specs describe the same computation.
#pragma once

#include <string>

#include "model/spec.h"

namespace qkv {

// The first difference, with both values: "layer 1 window is 8 and 0"; "" if they compute the same. Numbers are
// compared as floats; names, dropout, initialisation and offsets of norms are ignored.
std::string difference(const ModelSpec& a, const ModelSpec& b);

}  // namespace qkv
