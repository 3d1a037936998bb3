// All commands as a manual page, in the language of man(7): qkv help --man.
#pragma once

#include <string>

#include "common/command_info.h"

namespace qkv::app {

std::string man_page(const CommandInfo& program, const std::string& version);

}  // namespace qkv::app
