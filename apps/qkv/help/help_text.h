// The text of --help, from the table of commands.
#pragma once

#include <string>

#include "common/command_info.h"

namespace qkv::app {

// Lines of at most so many cells. The program itself lists its commands in groups.
std::string help_text(const CommandInfo& command, int columns);

int help_columns();  // of the terminal, at most 100: longer lines are hard to read

}  // namespace qkv::app
