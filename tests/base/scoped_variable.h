// An environment variable while it lives.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>

namespace qkv {

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {  // no value: not set
    if (const char* before = ::getenv(name); before != nullptr) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) const { value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1); }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace qkv
