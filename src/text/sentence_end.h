// Where a generated text that was cut off can end.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// A text that stops inside a sentence, up to the last sentence that is whole; if that is less than half of it, up to
// the last whole word, and an ellipsis. Half characters (U+FFFD at the end) are left out.
std::string up_to_sentence_end(std::string_view text);

}  // namespace qkv
