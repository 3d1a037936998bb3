#include "text/tokenizer/files/json_node.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {

std::string JsonNode::below(std::string_view key) const {
  const bool at_root = where_.find(": ") == where_.npos;
  return where_ + (at_root ? ": " : ".") + std::string(key);
}

void JsonNode::wrong_kind(std::string_view wanted) const {
  QKV_FAIL(where_, " is ", value_->is_structured() ? value_->type_name() : printable(value_->dump()), " but must be ",
           wanted, Hint("the file is damaged or not a tokenizer"));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!value_->is_object()) wrong_kind("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, below(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  QKV_FAIL(where_, ": the key '", key, "' is missing", Hint("the file is damaged or not a tokenizer"));
}

JsonNode JsonNode::at(size_t index) const {
  return {value_->get_ref<const Json::array_t&>()[index], fmt::format("{}[{}]", where_, index)};
}

size_t JsonNode::size() const {
  if (!value_->is_array()) wrong_kind("a list");
  return value_->size();
}

const std::string& JsonNode::string() const {
  if (!value_->is_string()) wrong_kind("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::flag() const {
  if (!value_->is_boolean()) wrong_kind("true or false");
  return value_->get<bool>();
}

int64_t JsonNode::integer() const {
  const bool fits =
      value_->is_number_integer() && !(value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX);
  if (!fits) wrong_kind("a whole number");
  return value_->get<int64_t>();
}

double JsonNode::number() const {
  if (!value_->is_number()) wrong_kind("a number");
  return value_->get<double>();
}

std::string JsonNode::string_or(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->string() : std::string(otherwise);
}

bool JsonNode::flag_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->flag() : otherwise;
}

int64_t JsonNode::integer_or(std::string_view key, int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->integer() : otherwise;
}

}  // namespace qkv
