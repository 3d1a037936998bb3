#include "base/error.h"

namespace qkv {
namespace {

std::string full_text(const std::string& message, const std::string& hint, Where where) {
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

}  // namespace qkv
