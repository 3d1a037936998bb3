#include "data/text_windows.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {

std::vector<TextWindow> windows_of(int64_t tokens, const WindowOptions& options) {
  const int64_t around = std::ssize(options.before) + std::ssize(options.after), room = options.length - around;
  QKV_CHECK(options.length >= 2 && room >= 1, "a window of ", options.length, " tokens",
            Hint("it needs ", std::max<int64_t>(around + 1, 2), " at least"));
  QKV_CHECK(options.overlap >= 0 && options.overlap < room, "windows of ", options.length, " tokens that share ",
            options.overlap, Hint("a window needs at least one new token"));
  const bool predicts_first = !options.before.empty();
  std::vector<TextWindow> windows;
  for (int64_t begin = 0; begin < tokens;) {
    const int64_t context = windows.empty() ? 0 : begin - options.overlap;
    const int64_t end = std::min(context + room, tokens);
    windows.push_back({.context = context, .begin = begin, .end = end});
    begin = end;
  }
  // Nothing stands before the first token of a window.
  if (!predicts_first) {
    for (TextWindow& w : windows) w.begin = std::max(w.begin, w.context + 1);
  }
  std::erase_if(windows, [](const TextWindow& w) { return w.begin >= w.end; });
  return windows;
}

std::vector<TokenText> cut_into_windows(std::span<const int32_t> ids, const WindowOptions& options) {
  std::vector<TokenText> texts;
  for (const TextWindow& w : windows_of(std::ssize(ids), options)) {
    TokenText& text = texts.emplace_back();
    text.ids = options.before;
    text.first = std::ssize(options.before) + w.begin - w.context;
    const std::span<const int32_t> part =
        ids.subspan(static_cast<size_t>(w.context), static_cast<size_t>(w.end - w.context));
    text.ids.insert(text.ids.end(), part.begin(), part.end());
    text.ids.insert(text.ids.end(), options.after.begin(), options.after.end());
  }
  return texts;
}

}  // namespace qkv
