// qkv help: the same text as --help.
#include <iostream>
#include <memory>

#include "base/error.h"
#include "common/commands.h"
#include "help/help_text.h"
#include "help/mistakes.h"

namespace qkv::app {

void add_help(Command app, const CommandInfo& program) {
  const Command command = app.add_command("help", "Print this text, or a command's options and examples");
  const auto words = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const CommandInfo& each : program.commands) names.push_back(each.name);
  command.add_option("COMMAND", *words, "Which command; the program itself if none is named").known(names);
  command.footer("Examples:\n  qkv help\n  qkv help run\n  qkv help data pack");
  command.callback([words, &program] {
    const CommandInfo* at = &program;
    for (const std::string& word : *words) {
      const CommandInfo* next = at->command(word);
      if (next == nullptr) {
        const Mistake mistake = unknown_command(*at, word);
        QKV_FAIL(mistake.what, Hint(mistake.hint));
      }
      at = next;
    }
    std::cout << help_text(*at, help_columns());
  });
}

}  // namespace qkv::app
