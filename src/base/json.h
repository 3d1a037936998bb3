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
  // Memory that the tree may take beyond the size of its text. A tree takes up to 40 times its text, so large documents
  // are read in parts or with a JsonReader.
  size_t tree = size_t{12} << 20;
};

// A JSON text, or a part of one. Errors about a part give the place in the whole document.
class JsonText {
 public:
  JsonText() = default;
  JsonText(std::string_view text) : text_(text), document_(text) {}
  JsonText(const std::string& text) : JsonText(std::string_view(text)) {}
  JsonText(const char* text) : JsonText(std::string_view(text)) {}
  JsonText(std::string_view text, std::string_view document, size_t items)
      : text_(text), document_(document), items_(items) {}

  std::string_view text() const { return text_; }
  std::string_view document() const { return document_; }
  size_t items() const { return items_; }  // members or elements of a part that is an object or an array

 private:
  std::string_view text_, document_;
  size_t items_ = 0;
};

// RFC 8259 with UTF-8, one value, no key twice in an object, and only numbers a double can hold.
Json parse_json(JsonText text, std::string_view what, JsonLimits limits = {});

// The known word closest to `word`, for hints; empty if none is close.
std::string nearest_key(std::string_view word, std::span<const std::string_view> known);

}  // namespace qkv
