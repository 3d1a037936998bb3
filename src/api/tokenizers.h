// The inside of qkv::Tokenizer (include/qkv/tokenizer.h).
#pragma once

#include <qkv/tokenizer.h>

#include "text/tokenizer/tokenizer.h"

namespace qkv::v1 {

struct Tokenizer::Impl {
  qkv::Tokenizer tokenizer;
};

Tokenizer made_of(qkv::Tokenizer tokenizer);
const qkv::Tokenizer& inside(const Tokenizer& tokenizer);

}  // namespace qkv::v1
