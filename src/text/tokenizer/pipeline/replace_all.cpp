#include "text/tokenizer/pipeline/replace_all.h"

namespace qkv {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != text.npos; found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  if (at > 0) text = out.append(text, at);
}

}  // namespace qkv
