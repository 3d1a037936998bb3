// Names of phases and roles as the demo says them, in both languages.
#pragma once

#include <string>
#include <string_view>

namespace qkv::app {

std::string phase_words(std::string_view phase, bool chinese);  // "plateau": "levels off"
std::string role_words(std::string_view role, bool chinese);    // of a rule or a measure

}  // namespace qkv::app
