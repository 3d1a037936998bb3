// The table of commands: what --help prints, what shells complete, what a typing error is compared with. It is filled
// as commands are added (common/command.h).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::app {

struct OptionInfo {
  std::string name;   // "--out"; "MODEL" for an argument
  std::string value;  // FILE, MODEL, N, TEXT, ...; empty for a flag
  std::string what, shown_default;
  std::vector<std::string> choices;  // one of these
  std::vector<std::string> known;    // others may be given too: names a shell may complete
  bool required = false, repeats = false;

  bool argument() const { return !name.starts_with("--"); }
  std::string value_text() const;  // "FILE", "auto|f32|bf16", "FILE..."
};

// Options and commands stay where they are: those who add them keep pointers.
struct CommandInfo {
  std::string name;  // "pack"
  std::string path;  // "qkv data pack"
  std::string what, group, footer;
  std::deque<OptionInfo> options;
  std::deque<CommandInfo> commands;
  std::vector<std::function<void()>> checks;  // of what was given, before the work
  std::vector<std::function<void()>> models;  // turn names of built-in models into paths, after the checks

  const CommandInfo* command(std::string_view named) const;  // nullptr: none
  const OptionInfo* option(std::string_view named) const;
};

// Commands of the script ./qkv, which this program does not have.
inline constexpr std::string_view kLauncherCommands[] = {"test", "bench", "package"};

// The command these words begin with, as deep as they go.
const CommandInfo& command_of(const CommandInfo& program, const std::vector<std::string>& words);

}  // namespace qkv::app
