// Fields of a request's JSON. A field that is absent or null is not there; unknown fields are ignored; a known one of
// the wrong type or outside its range is an ApiError 400 that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/api_error.h"

namespace qkv::server {

class Fields {
 public:
  // `path` stands before the names in errors: "messages[2]".
  Fields(const OrderedJson& object, std::string path);

  struct Range {
    double low, high;
  };
  struct WholeRange {
    int64_t low, high;
  };
  struct Sizes {
    size_t least, most;
  };
  const OrderedJson* find(std::string_view name) const;  // null: not there
  std::optional<double> number(std::string_view name, Range range) const;
  std::optional<int64_t> whole(std::string_view name, WholeRange range) const;  // 3.0 is whole, 3.5 is not
  std::optional<bool> flag(std::string_view name) const;
  std::optional<std::string> text(std::string_view name, Sizes bytes) const;
  std::string need_text(std::string_view name, Sizes bytes) const;
  const OrderedJson* list(std::string_view name, Sizes entries) const;
  std::optional<Fields> object(std::string_view name) const;
  // One of these words.
  std::optional<std::string> word(std::string_view name, const std::vector<std::string_view>& words) const;

  std::string path_of(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, const std::string& what) const;
  const OrderedJson& json() const { return *object_; }

 private:
  const OrderedJson* object_;
  std::string path_;
};

// A JSON object of at most 64 levels; an ApiError 400 otherwise.
OrderedJson parse_body(const std::string& body);

// For a message: the value, short, on one line.
std::string shown_json(const OrderedJson& value);

}  // namespace qkv::server
