#include "server/requests/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv::server {
namespace {

constexpr double kExact = 9007199254740992;  // 2^53: every whole number up to here is a double

const char* article_of(const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::boolean:
      return "a boolean";
    case OrderedJson::value_t::string:
      return "a string";
    case OrderedJson::value_t::array:
      return "a list";
    case OrderedJson::value_t::object:
      return "an object";
    case OrderedJson::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

std::string shown_json(const OrderedJson& value) {
  constexpr size_t kShown = 60;
  if (value.is_structured()) return article_of(value);
  return shortened(escaped(json_text(value, -1), LineBreaks::escaped), kShown);
}

OrderedJson parse_body(const std::string& body) {
  constexpr JsonLimits kLimits{.depth = 64, .bytes = size_t{16} << 20, .tree = size_t{40} << 20};
  if (body.empty()) throw ApiError(400, "the body is empty: send a JSON object");
  try {
    OrderedJson json = parse_ordered_json(body, "the body", kLimits);
    if (!json.is_object()) {
      throw ApiError(400, fmt::format("the body is {} but must be an object", article_of(json)));
    }
    return json;
  } catch (const Error& error) {
    throw ApiError(400, error.message());
  }
}

Fields::Fields(const OrderedJson& object, std::string path) : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) {
    throw ApiError(400, fmt::format("{} is {} but must be an object", path_, article_of(object)), path_);
  }
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Fields::fail(std::string_view name, const std::string& what) const {
  throw ApiError(400, path_of(name) + " " + what, path_of(name));
}

const OrderedJson* Fields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> Fields::number(std::string_view name, Range range) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(name, fmt::format("is {} but must be a number", article_of(*value)));
  const auto x = value->get<double>();
  if (!(x >= range.low && x <= range.high)) {
    fail(name, fmt::format("is {} but must be from {} to {}", shown_json(*value), range.low, range.high));
  }
  return x;
}

std::optional<int64_t> Fields::whole(std::string_view name, WholeRange range) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto wrong = [&](const std::string& what) {
    fail(name,
         fmt::format("is {} but must be {}", what, fmt::format("a whole number from {} to {}", range.low, range.high)));
  };
  if (!value->is_number()) wrong(article_of(*value));
  if (value->is_number_float()) {
    const auto x = value->get<double>();
    if (std::trunc(x) != x || std::abs(x) > kExact || x < static_cast<double>(range.low) ||
        x > static_cast<double>(range.high)) {
      wrong(shown_json(*value));
    }
    return static_cast<int64_t>(x);
  }
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (huge || value->get<int64_t>() < range.low || value->get<int64_t>() > range.high) wrong(shown_json(*value));
  return value->get<int64_t>();
}

std::optional<bool> Fields::flag(std::string_view name) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(name, fmt::format("is {} but must be true or false", shown_json(*value)));
  return value->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view name, Sizes bytes) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(name, fmt::format("is {} but must be a string", article_of(*value)));
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() < bytes.least || text.size() > bytes.most) {
    fail(name, fmt::format("has {} bytes but must have from {} to {}", text.size(), bytes.least, bytes.most));
  }
  return text;
}

std::string Fields::need_text(std::string_view name, Sizes bytes) const {
  std::optional<std::string> found = text(name, bytes);
  if (!found) fail(name, "is missing: it must be a string");
  return std::move(*found);
}

const OrderedJson* Fields::list(std::string_view name, Sizes entries) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) fail(name, fmt::format("is {} but must be a list", article_of(*value)));
  if (value->size() < entries.least || value->size() > entries.most) {
    fail(name, fmt::format("has {} entries but must have from {} to {}", value->size(), entries.least, entries.most));
  }
  return value;
}

std::optional<Fields> Fields::object(std::string_view name) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  return Fields(*value, path_of(name));
}

std::optional<std::string> Fields::word(std::string_view name, const std::vector<std::string_view>& words) const {
  const OrderedJson* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool known =
      value->is_string() && std::find(words.begin(), words.end(), value->get_ref<const std::string&>()) != words.end();
  if (!known) fail(name, fmt::format("is {} but must be one of {}", shown_json(*value), fmt::join(words, ", ")));
  return value->get<std::string>();
}

}  // namespace qkv::server
