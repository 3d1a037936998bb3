#include "text/tokenizer/models/unknown_runs.h"

namespace qkv {

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

void UnknownRuns::finish() {
  if (begin_ == end_) return;
  const std::string_view run = text_.substr(begin_, end_ - begin_);
  begin_ = end_;
  const int32_t known = options_.names ? options_.names->find(run) : -1;
  if (known < 0 && options_.bytes && options_.bytes->cover(run)) {
    for (const char c : run) put(options_.bytes->ids[static_cast<unsigned char>(c)], end_);
  } else {
    put(known >= 0 ? known : options_.unk_id, end_);
  }
}

}  // namespace qkv
