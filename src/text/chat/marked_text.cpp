#include "text/chat/marked_text.h"

namespace qkv {

size_t MarkedText::end_of_run(size_t at) const {
  if (marks_.empty()) return bytes_.size();
  const size_t end = marks_.find_first_not_of(marks_[at], at);
  return end == marks_.npos ? bytes_.size() : end;
}

size_t MarkedText::end_of_generated(size_t at) const {
  const bool generated = is_generated(at);
  while (at < size() && is_generated(at) == generated) at = end_of_run(at);
  return at;
}

void MarkedText::append(std::string_view bytes, uint8_t mark) {
  if (mark != kTemplate && marks_.empty()) marks_.resize(bytes_.size(), char{kTemplate});
  if (mark != kTemplate || !marks_.empty()) marks_.append(bytes.size(), static_cast<char>(mark));
  bytes_ += bytes;
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t count) {
  const bool marked = !marks_.empty() || !other.marks_.empty();
  if (marked && marks_.empty()) marks_.resize(bytes_.size(), char{kTemplate});
  if (marked && other.marks_.empty()) marks_.append(count, char{kTemplate});
  if (!other.marks_.empty()) marks_.append(other.marks_, begin, count);
  bytes_.append(other.bytes_, begin, count);
}

void MarkedText::append(const MarkedText& other, std::string_view within) {
  if (!within.empty()) append(other, static_cast<size_t>(within.data() - other.bytes_.data()), within.size());
}

MarkedText MarkedText::part(std::string_view within) const {
  MarkedText out;
  out.append(*this, within);
  return out;
}

MarkedText MarkedText::part(size_t begin, size_t count) const {
  MarkedText out;
  out.append(*this, begin, count);
  return out;
}

void MarkedText::mark_generated() {
  marks_.resize(bytes_.size(), char{kTemplate});
  for (char& mark : marks_) mark = static_cast<char>(static_cast<uint8_t>(mark) | kGenerated);
}

}  // namespace qkv
