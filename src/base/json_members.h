// One JSON object read member by member, for objects whose whole tree would take many times the memory of their text.
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

// As strict as parse_json, whose limits hold for each member. Each is handed over as soon as it is read, and then
// forgotten.
using JsonMember = FunctionRef<void(const std::string& key, const Json& value)>;
void parse_json_members(std::string_view text, std::string_view what, JsonMember member, JsonMemberLimits limits = {});

// The same with the values as text, for objects inside: what they hold is not looked at.
using JsonTextMember = FunctionRef<void(const std::string& key, std::string_view value)>;
void scan_json_members(std::string_view text, std::string_view what, JsonTextMember member,
                       JsonMemberLimits limits = {});

}  // namespace qkv
