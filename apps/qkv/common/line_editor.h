// Lines a person types: editing, history, wide characters. Where nobody sits at a terminal, lines of standard input.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/standard_input.h"

namespace qkv::app {

class LineEditor {
 public:
  // The history is read from the file and kept there; an empty path keeps none.
  LineEditor(std::string prompt, const std::filesystem::path& history);
  ~LineEditor();

  bool at_terminal() const { return terminal_ != nullptr; }
  // Without its end. Nothing where input ends, or at Ctrl-C on an empty line; Ctrl-C drops a line that is not.
  std::optional<std::string> read();

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
  InputLines lines_;  // without a terminal
};

// $XDG_STATE_HOME/qkv/history, or the same in ~/.local/state; empty where there is no home.
std::filesystem::path history_file();

}  // namespace qkv::app
