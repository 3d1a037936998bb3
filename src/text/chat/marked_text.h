// A text that knows where each byte comes from: the template, a message, or an answer of the model. Templates cut, join
// and rewrite messages; the marks go along, so that a message is never read as one of the template's control tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

class MarkedText {
 public:
  // Each text of an answer has a mark of its own, so that two answers side by side are told apart.
  static constexpr uint8_t kTemplate = 0, kMessage = 1, kFirstAnswer = 2, kLastAnswer = 127;
  static constexpr uint8_t kGenerated = 128;  // added to the others inside {% generation %}

  MarkedText() = default;
  MarkedText(std::string bytes) : bytes_(std::move(bytes)) {}
  MarkedText(const char* bytes) : bytes_(bytes) {}
  MarkedText(std::string bytes, uint8_t mark) { append(bytes, mark); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  uint8_t mark(size_t at) const { return marks_.empty() ? kTemplate : static_cast<uint8_t>(marks_[at]); }
  uint8_t origin(size_t at) const { return mark(at) % kGenerated; }
  bool is_generated(size_t at) const { return (mark(at) & kGenerated) != 0; }
  bool has_marks() const { return !marks_.empty(); }
  size_t end_of_run(size_t at) const;        // where the mark at `at` ends
  size_t end_of_generated(size_t at) const;  // where is_generated(at) changes

  void append(std::string_view own) { append(own, kTemplate); }
  void append(const std::string& own) { append(own, kTemplate); }
  void append(const char* own) { append(own, kTemplate); }
  void append(std::string_view bytes, uint8_t mark);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  void append(const MarkedText& other, size_t begin, size_t count);
  void append(const MarkedText& other, std::string_view within);  // within: a view of other.bytes()
  MarkedText part(std::string_view within) const;
  MarkedText part(size_t begin, size_t count) const;
  void mark_generated();

  bool operator==(const MarkedText&) const = default;

 private:
  std::string bytes_;
  std::string marks_;  // one per byte; empty: all are the template's
};

}  // namespace qkv
