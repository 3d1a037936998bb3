#include "common/command_info.h"

namespace qkv::app {

std::string OptionInfo::value_text() const {
  std::string text = value;
  if (!choices.empty()) {
    text.clear();
    for (const std::string& choice : choices) text += (text.empty() ? "" : "|") + choice;
  }
  return text + (repeats ? "..." : "");
}

const CommandInfo* CommandInfo::command(std::string_view named) const {
  for (const CommandInfo& each : commands) {
    if (each.name == named) return &each;
  }
  return nullptr;
}

const OptionInfo* CommandInfo::option(std::string_view named) const {
  for (const OptionInfo& each : options) {
    if (each.name == named) return &each;
  }
  return nullptr;
}

const CommandInfo& command_of(const CommandInfo& program, const std::vector<std::string>& words) {
  const CommandInfo* at = &program;
  for (const std::string& word : words) {
    const CommandInfo* next = at->command(word);
    if (next == nullptr) break;
    at = next;
  }
  return *at;
}

}  // namespace qkv::app
