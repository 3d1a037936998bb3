// How ops name a dropout mask to kernels.
#pragma once

#include "core/context.h"

namespace qkv::ops {

Dropout dropout_of(const Context& cx, float p, Place place, Site site);

}  // namespace qkv::ops
