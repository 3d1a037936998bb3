// Every failure the library reports is a qkv::Error: what went wrong with both values, a hint what to do, and where.
#pragma once

#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace qkv {

class Hint;

struct Where {
  const char* file;
  int line;
};

namespace detail {

// One part of a message: anything with operator<<, printed where it is needed. It refers to what it was made from, so it
// lives no longer than the expression it stands in. Parts are not templates on lists of types: a check costs its file
// almost nothing to compile. Hints are parts too, and are told from the others.
class MessagePart {
 public:
  MessagePart(const char* text) : value_(text), print_(print_text) {}
  MessagePart(const Hint& hint) : value_(&hint), print_(print_hint) {}
  template <class T>
  MessagePart(const T& value)
      : value_(&value), print_([](std::ostream& out, const void* v) { out << *static_cast<const T*>(v); }) {}

  bool is_hint() const { return print_ == print_hint; }
  bool is_text() const { return print_ == print_text; }  // our own words, not a value
  void print(std::ostream& out) const { print_(out, value_); }

 private:
  static void print_text(std::ostream& out, const void* text);
  static void print_hint(std::ostream& out, const void* hint);

  const void* value_;
  void (*print_)(std::ostream&, const void*);
};

std::string message_text(std::initializer_list<MessagePart> parts);

}  // namespace detail

// The advice at the end of a failed check:  QKV_CHECK(a == b, "a is ", a, " but b is ", b, Hint("make them equal"))
class Hint {
 public:
  explicit Hint(std::string_view advice) : text(advice) {}
  template <class... Parts>
  requires(sizeof...(Parts) > 1) explicit Hint(const Parts&... parts) : text(detail::message_text({parts...})) {}

  std::string text;
};

// Whatever a message quotes is escaped and cut (base/printable.h): values where they are printed, the whole in the
// constructor.
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

[[noreturn, gnu::cold]] void fail(Error::Kind kind, Where where, std::initializer_list<MessagePart> parts);

}  // namespace detail
}  // namespace qkv

#define QKV_HERE (::qkv::Where{__FILE__, __LINE__})

// Unconditional failure and the two checks: QKV_CHECK for what a caller or a file can get wrong, QKV_ASSERT for what
// only we can.
#define QKV_FAIL(...) ::qkv::detail::fail(::qkv::Error::Kind::input, QKV_HERE, {__VA_ARGS__})
#define QKV_CHECK(condition, ...)  \
  do {                             \
    if (!(condition)) [[unlikely]] \
      QKV_FAIL(__VA_ARGS__);       \
  } while (false)
#define QKV_ASSERT(condition, ...)                                                \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::qkv::detail::fail(::qkv::Error::Kind::internal, QKV_HERE, {__VA_ARGS__}); \
  } while (false)
