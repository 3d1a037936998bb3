// The beginning of the command line that makes a report again: command, model, and what it was opened with.
#pragma once

#include "base/command_line.h"
#include "open/open_model.h"

namespace qkv {

// The name of a built-in model whose folder this is; otherwise the path.
std::string model_argument(const std::string& path);

// For commands that look inside. `model` stands for its path: a server does not tell where its models lie.
CommandLine command_on(const OpenModel& opened, std::string_view command, const std::string& model);
CommandLine command_on(const OpenModel& opened, std::string_view command);

}  // namespace qkv
