#include "text/tokenizer/pipeline/normalized_text.h"

#include <utility>

#include "base/checked.h"
#include "text/unicode/utf8.h"

namespace qkv {

NormalizedText NormalizedText::from_original(std::string_view text, size_t start, GrowthLimit* limit) {
  narrow<uint32_t>(start + text.size(), "number of bytes in a text whose offsets are asked for");
  NormalizedText result;
  result.text_ = text;
  result.start_ = start;
  result.limit_ = limit;
  result.has_origin_ = true;
  result.origin_.reserve(text.size());
  auto at = static_cast<uint32_t>(start);
  while (!text.empty()) {
    const auto length = static_cast<uint32_t>(first_character(text).size());
    result.origin_.insert(result.origin_.end(), length, {at, at + length});
    at += length;
    text.remove_prefix(length);
  }
  return result;
}

NormalizedText::NormalizedText(const TextPiece& piece)
    : text_(piece.text), start_(piece.start), has_origin_(piece.origin != nullptr), limit_(piece.limit) {
  if (has_origin_) origin_.assign(piece.origin, piece.origin + piece.text.size());
}

void NormalizedText::prepend(std::string_view front, const char* step) {
  if (text_.empty()) return;
  if (limit_) limit_->spend(front.size() + text_.size(), step);
  if (has_origin_) origin_.insert(origin_.begin(), front.size(), TextRange(origin_.front()));
  text_.insert(0, front);
}

void TextRewriter::put(std::string_view bytes, TextRange from) {
  spend(bytes.size());
  out_ += bytes;
  if (text_.has_origin_) origin_.insert(origin_.end(), bytes.size(), from);
}

void TextRewriter::keep(size_t bytes) {
  spend(bytes);
  out_.append(text_.text_, at_, bytes);
  if (text_.has_origin_) {
    const auto from = text_.origin_.begin() + static_cast<std::ptrdiff_t>(at_);
    origin_.insert(origin_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
  }
  at_ += bytes;
}

void TextRewriter::replace(size_t bytes, std::string_view replacement) {
  put(replacement, text_.has_origin_ ? text_.origin_[at_] : TextRange{});
  at_ += bytes;
}

void TextRewriter::insert(std::string_view added) {
  const auto start = static_cast<uint32_t>(text_.start_);
  TextRange from{start, start};
  if (text_.has_origin_ && at_ > 0) from = text_.origin_[at_ - 1];
  put(added, from);
}

void TextRewriter::commit() {
  keep(text_.text_.size() - at_);
  text_.text_ = std::move(out_);
  text_.origin_ = std::move(origin_);
}

}  // namespace qkv
