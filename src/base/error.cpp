#include "base/error.h"

#include <sstream>
#include <utility>

#include "base/printable.h"
#include "base/shown_path.h"

namespace qkv {
namespace {

std::string clean(std::string_view text) {
  return shortened(escaped(text), kLongestMessage);
}

// Values are on one line; our own words may have line breaks. Hints list what is known, so a value of theirs may be
// as long as a hint.
void print_clean(std::ostream& out, const detail::MessagePart& part, size_t longest) {
  if (part.is_text() || part.is_hint()) return part.print(out);
  std::ostringstream value;
  part.print(value);
  out << shortened(escaped(std::move(value).str(), LineBreaks::escaped), longest);
}

// Cleans both.
std::string full_text(std::string& message, std::string& hint, Where where) {
  message = clean(message);
  hint = clean(hint);
  std::ostringstream out;
  out << message;
  if (!hint.empty()) out << "\n  hint: " << hint;
  out << "\n  at " << where.file << ':' << where.line;
  return std::move(out).str();
}

}  // namespace

Error::Error(Kind kind, std::string message, std::string hint, Where where)
    : std::runtime_error(full_text(message, hint, where)),
      kind_(kind),
      message_(std::move(message)),
      hint_(std::move(hint)),
      where_(where) {}

namespace detail {

void MessagePart::print_text(std::ostream& out, const void* text) {
  out << static_cast<const char*>(text);
}

void MessagePart::print_hint(std::ostream& out, const void* hint) {
  out << static_cast<const Hint*>(hint)->text;
}

std::string message_text(std::initializer_list<MessagePart> parts) {
  std::ostringstream out;
  for (const MessagePart& part : parts) print_clean(out, part, kLongestMessage);
  return std::move(out).str();
}

void fail(Error::Kind kind, Where where, std::initializer_list<MessagePart> parts) {
  std::ostringstream message, hint;
  for (const MessagePart& part : parts) print_clean(part.is_hint() ? hint : message, part, kLongestValue);
  throw Error(kind, with_shown_paths(std::move(message).str()), with_shown_paths(std::move(hint).str()), where);
}

}  // namespace detail

}  // namespace qkv
