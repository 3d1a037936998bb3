// Reads a JSON text value by value, without a tree: memory does not grow with the text. As strict as RFC 8259 with
// UTF-8, and only numbers that a double can hold.
//
//   JsonReader in(text, "vocab.json");
//   in.members([&](std::string_view key) { vocab.add(key, in.number().integer); });
//   in.end();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/json.h"

namespace qkv {

struct JsonNumber {
  enum class Kind { integer, large, real } kind = Kind::integer;  // large: a whole number above INT64_MAX
  int64_t integer = 0;
  uint64_t large = 0;
  double real = 0;  // also set for whole numbers
};

class JsonReader {
 public:
  enum class Kind { null, boolean, number, string, array, object };

  // The text must outlive the reader.
  JsonReader(JsonText text, std::string_view what, JsonLimits limits = {});

  Kind kind();  // of the next value

  // Each read takes the next value; a value of another kind is an Error.
  using Member = FunctionRef<void(std::string_view key)>;
  void members(Member member);  // `member` must read the value; its key is valid until it returns
  void elements(FunctionRef<void()> element);
  std::string_view string(std::string& spare);  // part of the text, or of `spare` if it has escapes
  JsonNumber number();
  bool boolean();
  void null();
  JsonText skip();  // checks the value and returns its text; does not look for keys that appear twice

  // An Error if anything but white space follows.
  void end();

  // Inside members(): where the key begins, with its quote.
  const char* key_begin() const { return key_begin_; }

  [[noreturn]] void fail_twice(std::string_view key) const;
  [[noreturn]] void fail_memory(size_t limit) const;

  const std::string& what() const { return what_; }

 private:
  char peek();  // after white space; 0 at the end
  void expect(char wanted, const char* after);
  void take_word(std::string_view word);
  void open();
  void skip_string();
  const char* plain_characters(const char* from) const;  // the quote or backslash after them
  const char* utf8_character(const char* from) const;    // the byte after it
  void append_escape(std::string& out);
  uint32_t take_hex();
  std::string place(const char* at) const;
  [[noreturn]] void fail(const char* at, const std::string& reason, const char* hint = nullptr) const;
  [[noreturn]] void fail_expected(const char* wanted);

  JsonText text_;
  std::string what_;
  int deepest_;
  const char *at_, *end_;
  int depth_ = 0;
  const char *key_begin_ = nullptr, *key_end_ = nullptr;  // with its quotes; of the member read last
};

// What a tree of values takes in memory, counted while it is built; an Error beyond the limit.
class JsonMemory {
 public:
  JsonMemory(const JsonReader& in, size_t limit) : in_(in), limit_(limit) {}
  void take(size_t bytes) {
    used_ += bytes;
    if (used_ > limit_) in_.fail_memory(limit_);
  }
  void take_string(size_t size) { take(kAllocation + sizeof(std::string) + (size > 15 ? size + kAllocation : 0)); }

  // One more element for a vector: it doubles, and while it does the old and the new memory exist.
  template <class Vector>
  void take_element(const Vector& list) {
    if (list.size() < list.capacity()) return;
    const size_t old = list.capacity() * sizeof(list[0]);
    take(kAllocation + 2 * old + sizeof(list[0]));
    used_ -= old;
  }
  static constexpr size_t kAllocation = 16;  // of malloc, for each

 private:
  const JsonReader& in_;
  size_t limit_, used_ = 0;
};

}  // namespace qkv
