// What is wrong with a command line, said so that it can be put right: the nearest name, the spelling of today, and
// whose --help to read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/command_info.h"

namespace qkv::app {

// A message and its hint.
struct Mistake {
  std::string what, hint;
};

Mistake unknown_command(const CommandInfo& under, const std::string& name);

// An option that has another name today, or another use; before anything else is read.
std::optional<Mistake> old_spelling(const CommandInfo& program, const std::vector<std::string>& words);

// `left`: words nobody wanted; `said`: what the parser says of the rest.
Mistake mistake_in(const CommandInfo& command, const std::vector<std::string>& left, const std::string& said);

}  // namespace qkv::app
