// Keys and values the layers of a model keep, of their own text and of a source.
#pragma once

#include <vector>

#include "model/spec.h"
#include "nn/kv_cache.h"

namespace qkv {

std::vector<KvLayout> kv_layouts(const ModelSpec& spec);
std::vector<KvLayout> source_layouts(const ModelSpec& spec);

}  // namespace qkv
