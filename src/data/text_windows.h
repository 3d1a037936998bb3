// Cuts a long text into windows that a model can read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/token_text.h"

namespace qkv {

struct WindowOptions {
  int64_t length = 0;   // most tokens of a window, `before` and `after` included
  int64_t overlap = 0;  // tokens repeated from the window before, as context; not predicted a second time
  std::vector<int32_t> before = {}, after = {};  // tokens every window begins and ends with, such as BOS
};

// Tokens [context, end) of the text are read, those from `begin` on are predicted.
struct TextWindow {
  int64_t context = 0, begin = 0, end = 0;
};

// Windows over a text of so many tokens. Each token is new in exactly one of them. Without `before` the first token of
// a window cannot be predicted; with an overlap of 1 that is only the first token of the text.
std::vector<TextWindow> windows_of(int64_t tokens, const WindowOptions& options);

// The same windows with their tokens.
std::vector<TokenText> cut_into_windows(std::span<const int32_t> ids, const WindowOptions& options);

}  // namespace qkv
