// Text on its way through normalizers and pre-tokenizers: its bytes and, if asked for, where in the original text each
// byte comes from. Without that record a rewrite costs no more than building a string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace qkv {

// Bytes of the original text.
struct TextRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

// A part of such a text, seen and not owned.
struct TextPiece {
  std::string_view text;
  const TextRange* origin = nullptr;  // one per byte of text; null: not recorded
  size_t start = 0;                   // where the piece begins in the original text

  TextPiece part(size_t begin, size_t end) const {
    return {.text = text.substr(begin, end - begin),
            .origin = origin ? origin + begin : nullptr,
            .start = origin && begin < end ? origin[begin].begin : start + begin};
  }
};

using PieceSink = FunctionRef<void(const TextPiece&)>;

class AlignedText {
 public:
  // The original text: every byte comes from the whole character it is part of.
  static AlignedText original(std::string_view text, size_t start);
  explicit AlignedText(const TextPiece& piece);

  const std::string& text() const { return text_; }
  TextPiece piece() const { return {.text = text_, .origin = recorded_ ? origin_.data() : nullptr, .start = start_}; }

  // Puts `front` before the text; it comes from where the first character does. An empty text stays empty.
  void prepend(std::string_view front);

 private:
  friend class Rewrite;
  AlignedText() = default;

  std::string text_;
  std::vector<TextRange> origin_;
  size_t start_ = 0;
  bool recorded_ = false;
};

// Replaces a text by a new one, written from front to back while the old one is read.
class Rewrite {
 public:
  explicit Rewrite(AlignedText& text) : text_(text) { out_.reserve(text.text_.size() + 16); }

  std::string_view rest() const { return std::string_view(text_.text_).substr(at_); }
  bool done() const { return at_ == text_.text_.size(); }

  void keep(size_t bytes);                                   // the next bytes as they are
  void skip(size_t bytes) { at_ += bytes; }                  // leave them out
  void replace(size_t bytes, std::string_view replacement);  // a character by another: comes from its first byte
  void insert(std::string_view added);                       // comes from where the byte read last does
  void commit();                                             // keeps the rest, and the text is the new one

 private:
  void put(std::string_view bytes, TextRange from);

  AlignedText& text_;
  std::string out_;
  std::vector<TextRange> origin_;
  size_t at_ = 0;
};

}  // namespace qkv
