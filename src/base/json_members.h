// Reads a JSON object member by member, for objects whose tree would take many times the memory of their text.
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
void parse_json_members(std::string_view text, std::string_view what, JsonMember member, JsonMemberLimits limits = {});

// The same with values as text, for nested objects; the values are not validated.
using JsonTextMember = FunctionRef<void(const std::string& key, std::string_view value)>;
void scan_json_members(std::string_view text, std::string_view what, JsonTextMember member,
                       JsonMemberLimits limits = {});

}  // namespace qkv
