// Strict JSON parsing with limits; errors name the text, the position and a hint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The literal ""_json would make every including file compile nlohmann's parser, half a second each. So its body goes
// into a template that is never instantiated, and the literal is only declared.
#define _json(...)    \
  _json(__VA_ARGS__); \
  template <class>    \
  nlohmann::json literal_of_nobody(__VA_ARGS__)
#include <nlohmann/json.hpp>
#undef _json

// Compiled once, in json.cpp: the serializer costs every file that calls dump() most of a second.
template <>
std::string nlohmann::json::dump(int indent, char indent_char, bool ensure_ascii, error_handler_t error_handler) const;
template <>
std::string nlohmann::ordered_json::dump(int indent, char indent_char, bool ensure_ascii,
                                         error_handler_t error_handler) const;

namespace qkv {

using Json = nlohmann::json;

// JSON to print. Its strings may hold any bytes, as paths do: what is not UTF-8 becomes U+FFFD. -1: on one line.
template <class AnyJson>
std::string json_text(const AnyJson& json, int indent = 2) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

struct JsonLimits {
  int depth = 64;
  size_t bytes = 100'000'000;
};

// RFC 8259 with UTF-8, one value, no key twice in an object, and only numbers a double can hold.
Json parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});

// A part of a document as a flat list of tokens, for parts with hundreds of thousands of values.
class JsonTape {
 public:
  enum class Kind : uint8_t {
    null,
    boolean,
    integer,
    number,
    string,
    key,
    open_array,
    close_array,
    open_object,
    close_object
  };

  size_t size() const { return items_.size(); }
  Kind kind(size_t i) const { return items_[i].kind; }
  std::string_view text(size_t i) const { return std::string_view(texts_).substr(items_[i].begin, items_[i].size); }
  int64_t integer(size_t i) const { return items_[i].integer; }  // an integer or a boolean
  double number(size_t i) const { return items_[i].number; }     // a number that is not a 64-bit integer

  void add(Kind kind) { items_.push_back({.kind = kind, .begin = 0}); }
  void add_text(Kind kind, std::string_view text);
  void add_integer(Kind kind, int64_t value) { items_.push_back({.kind = kind, .integer = value}); }
  void add_number(double value) { items_.push_back({.kind = Kind::number, .number = value}); }

 private:
  struct Item {
    Kind kind;
    uint32_t size = 0;
    union {
      uint64_t begin;
      int64_t integer;
      double number;
    };
  };
  std::vector<Item> items_;
  std::string texts_;
};

// The array or object at this path goes to a tape, brackets included; the document has null there. Duplicate keys in it
// are not checked.
struct TapedPart {
  std::vector<std::string_view> keys;  // from the root
  JsonTape tape = {};
};
Json parse_json(std::string_view text, std::string_view what, JsonLimits limits, std::span<TapedPart> taped);

// The known word closest to `word`, for hints; empty if none is close.
std::string nearest_key(std::string_view word, std::span<const std::string_view> known);

}  // namespace qkv
