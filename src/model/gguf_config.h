// GGUF's metadata as the config.json it was made from, and GGUF's names for the weights.
#pragma once

#include "base/json.h"
#include "io/gguf.h"
#include "model/tensor_names.h"

namespace qkv {

Json config_of(const Gguf& gguf);               // an Error that names the known architectures
TensorNames gguf_names(const ModelSpec& spec);  // an Error where GGUF has no place for such a model

}  // namespace qkv
