// Reads a JSON object or array part by part, for those whose tree would take many times the memory of their text.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/json.h"

namespace qkv {

struct JsonMemberLimits {
  int depth = 64;
  size_t bytes = 4'000'000;  // of one member's value
  size_t members = 250'000;
};

// As strict as parse_json, with its limits for each member. A member is passed on as soon as it is read, then freed.
using JsonMember = FunctionRef<void(const std::string& key, const Json& value)>;
void parse_json_members(JsonText text, std::string_view what, JsonMember member, JsonMemberLimits limits = {});

// The same with values as text. They are valid JSON, except that keys inside them may appear twice.
using JsonTextMember = FunctionRef<void(const std::string& key, JsonText value)>;
void scan_json_members(JsonText text, std::string_view what, JsonTextMember member, JsonMemberLimits limits = {});

// The elements of an array, as text.
void scan_json_elements(JsonText text, std::string_view what, FunctionRef<void(JsonText element)> element);

}  // namespace qkv
