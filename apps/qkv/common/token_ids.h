// What a command was given to read: text, or token ids instead (--ids), which need no tokenizer.
#pragma once

#include <string>

#include "api/inside.h"

namespace qkv::app {

struct GivenText {
  std::string text, target;  // target: what a model that translates has written so far
  bool ids = false;          // both are token ids: "1 403,407"
};

api::Text library_text(const GivenText& given);

}  // namespace qkv::app
