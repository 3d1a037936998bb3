// Every failure the library reports is a qkv::Error: what went wrong with both values, a hint what to do, and where.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace qkv {

struct Where {
  const char* file;
  int line;
};

// The advice at the end of a failed check:  QKV_CHECK(a == b, "a is ", a, " but b is ", b, Hint("make them equal"))
class Hint {
 public:
  template <class... Parts>
  explicit Hint(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    text = std::move(out).str();
  }
  std::string text;
};

class Error : public std::runtime_error {
 public:
  enum class Kind {
    input,     // the caller's data or request is wrong: exit code 2, HTTP 4xx
    internal,  // we are wrong: exit code 3, HTTP 5xx
  };

  Error(Kind kind, std::string message, std::string hint, Where where);

  Kind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  Where where() const { return where_; }

 private:
  Kind kind_;
  std::string message_, hint_;
  Where where_;
};

namespace detail {

template <class Part>
void append(std::ostringstream& message, std::string& hint, const Part& part) {
  if constexpr (std::is_same_v<Part, Hint>) {
    hint = part.text;
  } else {
    message << part;
  }
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(Error::Kind kind, Where where, const Parts&... parts) {
  std::ostringstream message;
  std::string hint;
  (append(message, hint, parts), ...);
  throw Error(kind, std::move(message).str(), std::move(hint), where);
}

}  // namespace detail
}  // namespace qkv

#define QKV_HERE (::qkv::Where{__FILE__, __LINE__})

// Unconditional failure and the two checks: QKV_CHECK for what a caller or a file can get wrong, QKV_ASSERT for what
// only we can.
#define QKV_FAIL(...) ::qkv::detail::fail(::qkv::Error::Kind::input, QKV_HERE, __VA_ARGS__)
#define QKV_CHECK(condition, ...)  \
  do {                             \
    if (!(condition)) [[unlikely]] \
      QKV_FAIL(__VA_ARGS__);       \
  } while (false)
#define QKV_ASSERT(condition, ...)                                              \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::qkv::detail::fail(::qkv::Error::Kind::internal, QKV_HERE, __VA_ARGS__); \
  } while (false)
