// Draws the architecture as text: the residual stream from top to bottom, one layer in detail.
#pragma once

#include <string>

#include "model/spec.h"

namespace qkv {

inline constexpr int kPictureWidth = 96;  // columns of a terminal, at most

std::string draw_picture(const ModelSpec& spec);

}  // namespace qkv
