// What a KV cache holds per layer: of the decoder's own sequence, and of an encoder's source for cross attention.
#pragma once

#include <vector>

#include "model/spec.h"
#include "nn/kv_cache.h"

namespace qkv {

std::vector<KvLayout> kv_layouts(const ModelSpec& spec);
std::vector<KvLayout> source_layouts(const ModelSpec& spec);

}  // namespace qkv
