// Training: from a recipe, as qkv train does it, or in a loop of one's own.
#pragma once

#include <qkv/model.h>

namespace qkv::QKV_INLINE v1 {}  // namespace qkv::QKV_INLINEv1
