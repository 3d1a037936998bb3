// Checks, whose failure is a qkv::Error (qkv/error.h).
#pragma once

#include <qkv/error.h>

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

namespace qkv {

class Hint;

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
