// Lets convert_model take the tokenizer along.
#pragma once

#include "model/checkpoint/convert.h"

namespace qkv {

ConvertOptions with_tokenizer(ConvertOptions options);

}  // namespace qkv
