// The JSON of a report as text.
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

// JSON has no NaN, and null would be read as "not measured": a number that is not finite is an Error that says where it
// stands.
std::string report_text(const Json& report, int indent);
std::string report_text(const nlohmann::ordered_json& report, int indent);

}  // namespace qkv
