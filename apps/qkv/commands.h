// One function a command, each in its own file: it adds its subcommand, whose callback does the work.
#pragma once

#include <CLI/CLI.hpp>

namespace qkv::app {

void add_demo(CLI::App& app);

}  // namespace qkv::app
