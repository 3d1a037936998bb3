// Token ids instead of text: --ids. Needs no tokenizer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "open/open_model.h"

namespace qkv::app {

// "1 403,407": whole numbers with spaces or commas between them.
std::vector<int32_t> parse_ids(std::string_view text);

// What a command was given to read.
struct GivenText {
  std::string text, target;  // target: what a model that translates has written so far
  bool ids = false;          // both are token ids
};

// Its tokens. Texts get the special tokens the model expects; ids are taken as they are, after the token a target starts
// with, and must be in the vocabulary.
TokenText given_tokens(const OpenModel& model, const GivenText& given);

}  // namespace qkv::app
