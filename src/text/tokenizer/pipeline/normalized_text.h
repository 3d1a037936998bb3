// Text inside the tokenizer pipeline: its bytes and, optionally, for each byte the range of the original text it comes
// from (Hugging Face's NormalizedString). Without origins an edit costs no more than building a string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/tokenizer/pipeline/growth_limit.h"

namespace qkv {

// A byte range of the original text.
struct TextRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

// A view of a part of a NormalizedText.
struct TextPiece {
  std::string_view text;
  const TextRange* origin = nullptr;  // one per byte of text; null: not kept
  size_t start = 0;                   // offset of the piece in the original text
  GrowthLimit* limit = nullptr;       // of all texts made from it; null: none

  TextPiece part(size_t begin, size_t end) const {
    return {.text = text.substr(begin, end - begin),
            .origin = origin ? origin + begin : nullptr,
            .start = origin && begin < end ? origin[begin].begin : start + begin,
            .limit = limit};
  }
};

using PieceSink = FunctionRef<void(const TextPiece&)>;

class NormalizedText {
 public:
  // An unmodified text with origins: each byte maps to the whole character it is part of.
  static NormalizedText from_original(std::string_view text, size_t start, GrowthLimit* limit = nullptr);
  explicit NormalizedText(const TextPiece& piece);

  const std::string& text() const { return text_; }
  TextPiece piece() const {
    return {.text = text_, .origin = has_origin_ ? origin_.data() : nullptr, .start = start_, .limit = limit_};
  }
  GrowthLimit* limit() const { return limit_; }

  // Inserts `front` before the text, with the origin of the first character. An empty text stays empty. `step` is the
  // name for errors.
  void prepend(std::string_view front, const char* step);

 private:
  friend class TextRewriter;
  NormalizedText() = default;

  std::string text_;
  std::vector<TextRange> origin_;
  size_t start_ = 0;
  bool has_origin_ = false;
  GrowthLimit* limit_ = nullptr;
};

// Edits a NormalizedText in one pass from front to back.
class TextRewriter {
 public:
  // `step`: what edits the text, for errors.
  TextRewriter(NormalizedText& text, const char* step) : text_(text), step_(step) {
    out_.reserve(text.text_.size() + 16);
  }

  std::string_view rest() const { return std::string_view(text_.text_).substr(at_); }
  bool done() const { return at_ == text_.text_.size(); }

  void keep(size_t bytes);                                   // copy the next bytes
  void skip(size_t bytes) { at_ += bytes; }                  // drop the next bytes
  void replace(size_t bytes, std::string_view replacement);  // with the origin of the first replaced byte
  void insert(std::string_view added);                       // with the origin of the byte read last
  void commit();                                             // copy the rest and store the result in the text

 private:
  void put(std::string_view bytes, TextRange from);
  void spend(size_t bytes) const {
    if (text_.limit_) text_.limit_->spend(bytes, step_);
  }

  NormalizedText& text_;
  const char* step_;
  std::string out_;
  std::vector<TextRange> origin_;
  size_t at_ = 0;
};

}  // namespace qkv
