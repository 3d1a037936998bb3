// Every failure the library reports is a qkv::Error: what went wrong with both values, a hint what to do, and where.
#pragma once

#include <qkv/export.h>

#include <stdexcept>
#include <string>

namespace qkv {

struct Where {
  const char* file;
  int line;
};

// Whatever a message quotes is escaped and cut: values where they are printed, the whole in the constructor. what() has
// all parts.
class QKV_API Error : public std::runtime_error {
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

// Something that was closed or moved from was asked for more.
class QKV_API ClosedError : public Error {
 public:
  using Error::Error;
};

// Something is in use: by another thread where only one may use it, or by this very thread, from within a function that it
// calls.
class QKV_API BusyError : public Error {
 public:
  using Error::Error;
};

}  // namespace qkv
