// What every C function does (include/qkv/c.h): nothing is thrown, errors are kept for the thread, results are copied.
#pragma once

#include <qkv/error.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/error.h"

namespace qkv::v1 {

struct LastError {
  std::string message, hint;
};
inline LastError& last_error() {
  static thread_local LastError error;
  return error;
}

inline constexpr const char* kOurMistake = "this is a mistake of the library: report it with what was called";

inline void keep_error() noexcept {
  try {
    LastError& kept = last_error();
    try {
      throw;
    } catch (const Error& error) {
      kept = {error.message(), error.hint()};
    } catch (const std::exception& error) {
      const std::optional<Error> known = environment_error(error);
      kept = known ? LastError{known->message(), known->hint()} : LastError{error.what(), kOurMistake};
    } catch (...) {
      kept = {"something was thrown that is no error", kOurMistake};
    }
    if (kept.message.empty()) kept.message = "unknown";
  } catch (...) {  // no memory for the message
  }
}

// What `work` returns, or `failed`; nothing is thrown.
template <class Result, class Work>
Result guarded(Result failed, const Work& work) noexcept {
  try {
    last_error() = {};
    return work();
  } catch (...) {
    keep_error();
    return failed;
  }
}

inline void check_given(const void* pointer, const char* what) {
  QKV_CHECK(pointer != nullptr, what, " is NULL", Hint("see the comments of qkv/c.h"));
}

template <class Value>
Value* copied(const Value* from, size_t count) {
  auto* to = static_cast<Value*>(std::malloc(count * sizeof(Value) + sizeof(Value)));
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, from, count * sizeof(Value));
  return to;
}

inline char* c_text(const std::string& text) {
  return copied(text.c_str(), text.size() + 1);
}

// What the caller's version of a struct has; the rest as it is by default.
template <class Options>
Options taken(const Options* given, Options defaults) {
  if (given == nullptr) return defaults;
  QKV_CHECK(given->size >= sizeof(size_t) && given->size <= 4096, "the size of the options is ", given->size,
            Hint("set it to sizeof(...)"));
  std::memcpy(&defaults, given, std::min(given->size, sizeof(Options)));
  return defaults;
}

}  // namespace qkv::v1
