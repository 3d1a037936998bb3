// What other programs (llama.cpp, vLLM, transformers, ollama) call our options and commands.
#pragma once

#include <string>
#include <string_view>

#include "common/command_info.h"

namespace qkv::app {

// What the command has in place of an option of another program: "--max-new", "--set steps=N", or an argument's name
// such as "MODEL". Empty if it is not known, or this command has nothing like it.
std::string own_option(const CommandInfo& command, std::string_view theirs);

// The command of ours for one of another program; empty if it is not known.
std::string_view own_command(std::string_view theirs);

}  // namespace qkv::app
