// A JSON value with its path in the file, for error messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace qkv {

class JsonNode {
 public:
  // The value must outlive the node. `where` is "file" or "file: key.key[3]".
  JsonNode(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json& json() const { return *value_; }
  const std::string& where() const { return where_; }

  bool is_null() const { return value_->is_null(); }
  std::optional<JsonNode> find(std::string_view key) const;  // none if missing or null
  JsonNode at(std::string_view key) const;                   // an Error if missing or null
  JsonNode at(size_t index) const;                           // of an array, index < size()
  size_t size() const;                                       // of an array; an Error for anything else

  const std::string& string() const;
  bool flag() const;
  int64_t integer() const;
  double number() const;

  std::string string_or(std::string_view key, std::string_view otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const;

 private:
  [[noreturn]] void wrong_kind(std::string_view wanted) const;
  std::string below(std::string_view key) const;

  const Json* value_;
  std::string where_;
};

}  // namespace qkv
